//! Words that are part of the format: every reader of it compares them.

/// What a statement says of its own reach.
pub const SEMANTICS: [&str; 10] = [
    "projection: the original receipt is authoritative for Attest verification",
    "receipt-signature and RFC3161 timestamp are carried in the original receipt",
    "trust-material is producer-supplied context, never recipient authorization",
    "step manifests, causal references, isolation, reproducibility and source observations are carried only in the original receipt",
    "external causal objects, capsule manifests, source files and artifact bytes are omitted and require separately delivered evidence",
    "resolvedDependencies is empty: input manifests are not individual resource digests",
    "symlinks are carried in the original inventory but are not file-digest subjects",
    "workflow identifies the authorizing signing workflow, not runner integrity or build correctness",
    "no separate artifact signature is asserted",
    "startedOn is derived from the producer-reported completion and duration, not trusted time",
];

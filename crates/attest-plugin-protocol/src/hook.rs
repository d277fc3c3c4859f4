//! The four places at which a plugin may be asked.

use crate::words::words;

words! {
    /// A place in a run at which a plugin may be asked (seed 6.3).
    Hook, "hook" {
        /// Once, before any step.
        PipelineValidate = "pipeline.validate",
        /// Before each step that runs or is taken from the cache.
        StepPre = "step.pre",
        /// After each step is recorded.
        StepPost = "step.post",
        /// Once, before the receipt is signed.
        ReceiptFinalize = "receipt.finalize",
    }
}

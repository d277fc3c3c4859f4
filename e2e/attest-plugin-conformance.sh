#!/bin/sh
# Runs `attest plugins conformance` against every plugin of attest that is here.
#
#   e2e/attest-plugin-conformance.sh
#
# Builds what it runs with cargo (CARGO_TARGET_DIR counts), unless FORGE_BIN_DIR
# names a directory that holds the programs. The last line on standard output is
# `N passed, N failed, N warned` over all plugins; exit status 0 only if none failed.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd)

if [ -n "${FORGE_BIN_DIR:-}" ]; then
    bin=$(cd "$FORGE_BIN_DIR" && pwd)
else
    cargo build --quiet -p attest -p attest-policy >&2
    target=${CARGO_TARGET_DIR:-$root/target}
    case $target in /*) ;; *) target=$root/$target ;; esac
    bin=$target/debug
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# A workspace for the plugin that reads a policy.
mkdir -p "$work/ready/.attest"
cat >"$work/ready/.attest/policy.toml" <<'POLICY'
version = 1

[[command]]
id = "no-downloads"
decision = "deny"
severity = "high"
deny = ["*curl*"]
POLICY

passed=0
failed=0
warned=0
lines=$("$bin/attest" plugins conformance --list | grep -c .)

# check LABEL [OPTION...] PLUGIN
check() {
    printf '== %s\n' "$1"
    shift
    report=$work/report
    code=0
    "$bin/attest" --quiet plugins conformance "$@" >"$report" || code=$?
    cat "$report"
    good=$(grep -c '^PASS ' "$report" || true)
    bad=$(grep -c '^FAIL ' "$report" || true)
    odd=$(grep -c '^WARN ' "$report" || true)
    skipped=$(grep -c '^SKIP ' "$report" || true)
    told=$((good + bad + odd + skipped))
    # Neither a tool that broke off nor one that says less than it should may pass for success.
    if [ "$code" -gt 1 ] || [ "$told" -ne "$lines" ] ||
        { [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        printf 'the tool ended with %s after %s lines\n' "$code" "$told"
        bad=$((bad + 1))
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    warned=$((warned + odd))
}

check attest-policy --name policy --workspace "$work/ready" "$bin/attest-policy"
check attest-plugin-1.py "$root/docs/examples/attest-plugin-1.py"
check attest-noop.sh --name noop "$root/docs/examples/attest-noop.sh"

printf '%s passed, %s failed, %s warned\n' "$passed" "$failed" "$warned"
[ "$failed" -eq 0 ]

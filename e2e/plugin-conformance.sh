#!/bin/sh
# Runs the conformance tool against every reference plugin, and again with --strict.
#
#   e2e/plugin-conformance.sh [--usual]
#
# With --usual the runs with --strict are left out.
#
# Builds what it runs with cargo (CARGO_TARGET_DIR counts), unless FORGE_BIN_DIR
# names a directory that holds the programs. The last line on standard output is
# `N passed, N failed`, over all plugins and both runs, skipped lines not counted;
# exit status 0 only if none failed.
set -eu

case "${1:-}" in
'') strict=yes ;;
--usual) strict= ;;
*)
    echo "usage: $0 [--usual]" >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")/.."
root=$(pwd)

if [ -n "${FORGE_BIN_DIR:-}" ]; then
    bin=$(cd "$FORGE_BIN_DIR" && pwd)
else
    cargo build --quiet -p forge-plugin-conformance -p forge-ref-plugin -p forge-exec-plugin \
        -p forge-codex-plugin >&2
    target=${CARGO_TARGET_DIR:-$root/target}
    case $target in /*) ;; *) target=$root/$target ;; esac
    bin=$target/debug
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The command behind forge-exec-plugin: it does what the valid session asks for.
agent=$work/agent.sh
cat >"$agent" <<'AGENT'
#!/bin/sh
cat >/dev/null
printf 'conformance\n' >answer.txt
printf 'feat: add the answer\n' >"$FORGE_SUBJECT_FILE"
printf '{"summary":"Added the answer.","changes":["answer.txt: new"]}\n' >"$FORGE_REPORT_FILE"
AGENT
chmod +x "$agent"

# One that is still at work when `cancel` comes, with a child that has to go as well.
busy=$work/busy.sh
cat >"$busy" <<'AGENT'
#!/bin/sh
cat >/dev/null
sleep 60 &
wait
AGENT
chmod +x "$busy"

# `python3` may be a script that looks for one of many; with a process per line that adds up.
mkdir "$work/bin"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$work/bin/python3"
export PATH="$work/bin:$PATH"

passed=0
failed=0
strict_lines=$("$bin/forge-plugin-conformance" --list --strict | grep -c .)

# check LABEL OPERATION PLUGIN [ARG...]
check() {
    label=$1 operation=$2
    shift 2
    printf '== %s (%s)\n' "$label" "$operation"
    judge 26 --operation "$operation" "$@"
    [ -n "$strict" ] || return 0
    printf '== %s (%s, strict)\n' "$label" "$operation"
    judge "$strict_lines" --strict --operation "$operation" "$@"
}

# judge LINES OPTION... PLUGIN [ARG...]
judge() {
    lines=$1
    shift
    report=$work/report
    code=0
    "$bin/forge-plugin-conformance" --quiet "$@" >"$report" || code=$?
    cat "$report"
    good=$(grep -c '^PASS ' "$report" || true)
    bad=$(grep -c '^FAIL ' "$report" || true)
    skipped=$(grep -c '^SKIP ' "$report" || true)
    # Neither a tool that broke off nor one that says less than it should may pass for success.
    if [ "$code" -gt 1 ] || [ $((good + bad + skipped)) -ne "$lines" ] ||
        { [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
        printf 'the tool ended with %s after %s lines\n' "$code" "$((good + bad + skipped))"
        bad=$((bad + 1))
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
}

check forge-ref-plugin text "$bin/forge-ref-plugin"
check forge-plugin-v1.py text "$root/docs/examples/forge-plugin-v1.py"
check forge-exec-plugin workspace_edit "$bin/forge-exec-plugin" -- "$agent"
if [ -n "$strict" ]; then
    printf '== forge-exec-plugin (cancelled at work, strict)\n'
    judge 2 --strict --only cancel-at-once --only cancel-under-way --operation workspace_edit \
        "$bin/forge-exec-plugin" -- "$busy"
fi
export CODEX_BIN="$root/e2e/fake-codex.py"
check forge-codex-plugin workspace_edit "$bin/forge-codex-plugin"

printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

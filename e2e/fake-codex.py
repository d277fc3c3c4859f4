#!/usr/bin/env python3
"""Stands in for the Codex CLI where no model is wanted.

Takes the arguments that forge-codex-plugin gives, reads the task, writes
`answer.txt` into the workspace and the final object into its file. It prints
what the real one prints besides, an error item of a run that succeeds included.
"""
import json
import pathlib
import sys


def value(name):
    return sys.argv[sys.argv.index(name) + 1]


if sys.argv[1] != "exec" or sys.argv[-1] != "-":
    sys.exit("fake-codex: not called as `codex exec ... -`")
task = sys.stdin.read()
if "\nTask:\n" not in task:
    sys.exit("fake-codex: no task on standard input")
schema = json.loads(pathlib.Path(value("--output-schema")).read_text())
if schema["required"] != ["commit_subject", "summary", "changes"]:
    sys.exit("fake-codex: not the schema that it knows")

print("Reading prompt from stdin...", file=sys.stderr)
print('{"type":"item.completed","item":{"type":"error","message":"unknown model"}}')
pathlib.Path(value("-C"), "answer.txt").write_text("conformance\n")
final = {
    "commit_subject": "feat: add the answer",
    "summary": "Added the answer.",
    "changes": ["answer.txt holds the answer"],
}
pathlib.Path(value("--output-last-message")).write_text(json.dumps(final))

"""Writes the JSON of the variable `value` as TOML."""

import json
import os
import sys


def text(value: object) -> str:
    """Return one value, tables in a line."""
    if isinstance(value, dict):
        members = ", ".join(f"{text(name)} = {text(each)}" for name, each in value.items())
        return f"{{ {members} }}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    if value is None:
        sys.exit("TOML has no null")
    return json.dumps(value, ensure_ascii=False)


for name, value in json.loads(os.environ["value"]).items():  # noqa: SIM112
    sys.stdout.write(f"{text(name)} = {text(value)}\n")

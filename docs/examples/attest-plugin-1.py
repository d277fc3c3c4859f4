#!/usr/bin/env python3
"""A plugin of attest-plugin/1 in one file, without dependencies.

It has two rules: no step pipes a download into a shell (denied), and every
step has a time limit (warned of). What it shows is the frame: how to read
strictly, what to answer, and how to leave.

    hooks = ["pipeline.validate", "step.pre"], deterministic = true

stdin and stdout carry messages and nothing else; everything for people goes to
stderr, where attest keeps it in the log of the run. Exit status: 0 after
`shutdown`, 1 if the core broke the protocol or left, 2 if it was started in a
way in which it cannot work.

Needs Python 3.8 or newer.
"""

import sys

# A json.py beside this file would be imported first, and nobody pinned it.
sys.path = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]

import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402

VERSION = "1.0.0"
HOOKS = ("pipeline.validate", "step.pre")
MESSAGE_BYTES = 1048576
FINDINGS = 256
RESOURCE_BYTES = 256
SHOWN = 120
NAME = re.compile(r"[a-z0-9-]{1,32}")
DOWNLOAD_TO_SHELL = re.compile(r"\b(curl|wget)\b[^;&\n]*\|\s*(sudo\s+)?(bash|dash|ksh|zsh|sh)\b")


class ProtocolError(Exception):
    """The core broke a rule; there is nobody to answer to."""


def require(holds, rule):
    if not holds:
        raise ProtocolError(rule)


def read_message(stream):
    """Reads one line: one JSON object in UTF-8, without a key that stands twice."""
    line = stream.readline(MESSAGE_BYTES + 1)
    require(line, "the core left without `shutdown`")
    require(line.endswith(b"\n"), "a message is too long or has no line feed")
    try:
        message = json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
        json.dumps(message, ensure_ascii=False).encode("utf-8")  # has no half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a message is not JSON: %s" % error) from error
    require(type(message) is dict, "a message is not an object")
    require(type(message.get("v")) is int and message["v"] == 1, "`v` is not 1")
    require(type(message.get("kind")) is str, "`kind` is not a text")
    return message


def unique(pairs):
    value = dict(pairs)
    require(len(value) == len(pairs), "a key stands twice")
    return value


def refuse(constant):
    raise ValueError("%s is no JSON" % constant)


def member(value, name, kind):
    """Takes a member of the right type. Other members are for newer plugins."""
    require(type(value) is dict and type(value.get(name)) is kind, "`%s` is not there or of another type" % name)
    return value[name]


def send(stream, message):
    """Writes one compact line, and does not keep the core waiting for it."""
    line = json.dumps(message, separators=(",", ":"), ensure_ascii=True)
    stream.write(line.encode("ascii") + b"\n")
    stream.flush()


def plugin_name():
    name = os.environ.get("ATTEST_PLUGIN_NAME", "example")
    if not NAME.fullmatch(name):
        raise ValueError("ATTEST_PLUGIN_NAME is no name of a plugin")
    return name


def hello_ok(message):
    require(message["kind"] == "hello", "the first message is not `hello`")
    require(1 in member(message, "protocols", list), "the core does not speak version 1")
    return {
        "kind": "hello_ok",
        "name": plugin_name(),
        "version": VERSION,
        "protocol": 1,
        "hooks": list(HOOKS),
        "deterministic": True,
    }


def judge(kind, payload):
    """Answers from the payload alone, so that the same payload has the same answer."""
    if kind == "pipeline.validate":
        steps = member(member(payload, "pipeline", dict), "steps", list)
    else:
        steps = [member(payload, "step", dict)]
    denied = []
    warned = []
    for step in steps:
        run = member(step, "run", str)
        if DOWNLOAD_TO_SHELL.search(run):
            text = "pipes a download into a shell: %s" % run[:SHOWN]
            denied.append(finding("no-download-to-shell", "critical", text, step))
        if kind == "pipeline.validate" and "timeout_secs" not in step:
            warned.append(finding("time-limit", "low", "has no timeout_secs", step))
    decision = "deny" if denied else "warn" if warned else "allow"
    return {
        "kind": "verdict",
        "decision": decision,
        "findings": (denied + warned)[:FINDINGS],
        "annotation": {"steps": len(steps), "denied": len(denied), "warned": len(warned)},
    }


def finding(rule, severity, message, step):
    resource = ("step:" + member(step, "name", str)).encode("utf-8")[:RESOURCE_BYTES]
    return {
        "rule": rule,
        "severity": severity,
        "message": message,
        "resource": resource.decode("utf-8", "ignore"),
    }


def serve(stdin, stdout):
    last = 0
    while True:
        message = read_message(stdin)
        kind = message["kind"]
        known = last == 0 or kind == "shutdown" or kind in HOOKS
        if not known:
            continue  # of a newer core; it waits for no answer to what was not announced
        number = member(message, "id", int)
        require(number > last and (last or number == 1), "`id` does not rise from 1")
        if last == 0:
            answer = hello_ok(message)
        elif kind == "shutdown":
            return
        else:
            answer = judge(kind, member(message, "payload", dict))
        last = number
        send(stdout, dict({"v": 1, "id": number}, **answer))


def main():
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except ValueError as error:
        print("misconfigured: %s" % error, file=sys.stderr)
        return 2
    except (ProtocolError, OSError) as error:
        print("giving up: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

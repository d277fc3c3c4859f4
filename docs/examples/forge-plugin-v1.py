#!/usr/bin/env python3
"""A forge plugin of protocol v1 in one file, without dependencies.

It performs one `text` operation: the result is the input in upper case. What
it shows is the frame: how to read strictly, what to answer, and how to leave.

    ./forge-plugin-v1.py < frames.ndjson

One process serves one operation. stdin and stdout carry frames and nothing
else; everything for people goes to stderr. A peer that breaks the protocol
gets no answer: a line on stderr and exit status 2. An operation that could not
be performed is not a broken protocol: it is answered by a `failure` frame and
exit status 0.

Needs Python 3.8 or newer.
"""

import json
import re
import sys

VERSION = "v1"
KNOWN = ("text", "workspace_edit", "progress", "cancel", "commit_subject", "agent_report")
SUPPORTED = ("text",)
LIMITS = {
    "frame_bytes": 1048576,
    "progress_frames": 128,
    "text_bytes": 65536,
    "progress_text_bytes": 1024,
    "commit_subject_bytes": 256,
}
ID = re.compile(r"[0-9a-f]{32}")
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
NOT_COMPACT = re.compile(rb"[^!-~]")


class ProtocolError(Exception):
    """The peer broke a rule; there is nobody to answer to."""


def require(holds, rule):
    if not holds:
        raise ProtocolError(rule)


def read_frame(stream):
    """Reads one frame: one compact JSON object in UTF-8, ended by LF."""
    line = stream.readline(LIMITS["frame_bytes"] + 1)
    require(line.endswith(b"\n"), "a frame is too long or lacks its LF")
    frame = line[:-1]
    # Once the strings are gone, only visible ASCII may be left. This catches
    # blanks between tokens, CR before LF, a byte order mark and a blank line.
    bare = STRING.sub(b"", frame)
    require(bare and not NOT_COMPACT.search(bare), "a frame is not one compact object")
    try:
        value = json.loads(frame.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a frame is not JSON: %s" % error)
    require(type(value) is dict, "a frame is not an object")
    return value


def unique(pairs):
    """Builds an object, at any depth, unless a name comes twice."""
    members = dict(pairs)
    require(len(members) == len(pairs), "a field is given twice")
    return members


def refuse_constant(name):
    """Python reads NaN and Infinity; JSON has neither."""
    raise ProtocolError("%s is not JSON" % name)


def closed(frame, kind, *fields):
    """Checks type, version and that the frame has exactly its fields."""
    require(frame.get("type") == kind, "expected a frame of type " + kind)
    require(frame.get("version") == VERSION, "the version is not " + VERSION)
    expected = {"version", "id", "type"}.union(fields)
    require(set(frame) == expected, kind + " lacks a field or has one too many")


def read_initialize(stream):
    """Returns the session's id and the offered capabilities."""
    frame = read_frame(stream)
    closed(frame, "initialize", "capabilities", "limits")
    session, offer, limits = frame["id"], frame["capabilities"], frame["limits"]
    require(type(session) is str and ID.fullmatch(session), "the id is not 32 lower-case hexadecimal digits")
    require(type(offer) is list, "capabilities is not a list")
    require(all(type(one) is str and one in KNOWN for one in offer), "an offered capability is unknown")
    require(len(set(offer)) == len(offer), "a capability is offered twice")
    # `==` alone would let true and 1048576.0 pass for integers.
    require(type(limits) is dict and limits == LIMITS, "the limits are not those of v1")
    require(all(type(one) is int for one in limits.values()), "a limit is not an integer")
    return session, offer


def read_execute(stream, session):
    """Returns the text to work on."""
    frame = read_frame(stream)
    closed(frame, "execute", "operation", "input")
    require(frame["id"] == session, "the id is not that of the session")
    require(frame["operation"] == "text", "the operation was not negotiated")
    require(type(frame["input"]) is str, "the input is not text")
    require(utf8_length(frame["input"]) <= LIMITS["text_bytes"], "the input is too long")
    return frame["input"]


def utf8_length(text):
    """Counts bytes; an escape such as \\ud800 alone makes a string that has none."""
    try:
        return len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise ProtocolError("a string holds half of a surrogate pair")


def write_frame(stream, session, kind, **fields):
    """Writes one frame and hands it to the peer at once."""
    frame = {"version": VERSION, "id": session, "type": kind, **fields}
    stream.write(json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n")
    stream.flush()


def serve(stdin, stdout):
    session, offer = read_initialize(stdin)
    selected = [one for one in SUPPORTED if one in offer]
    require(selected, "nothing that this plugin performs is offered")
    write_frame(stdout, session, "initialized", capabilities=selected)

    output = read_execute(stdin, session).upper()
    # Upper case can be longer than its origin, for example that of U+00DF.
    if utf8_length(output) <= LIMITS["text_bytes"]:
        write_frame(stdout, session, "result", output=output)
    else:
        write_frame(stdout, session, "failure", category="execution_failed")


def main():
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except ProtocolError as error:
        print("forge-plugin-v1: %s" % error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

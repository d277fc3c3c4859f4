"""A forge plugin of protocol v1 that keeps every rule but the one named by its first argument.

    mutant.py RULE text|workspace_edit

RULE is the name of a scenario of forge-plugin-conformance, for some with a second way to break it
behind a slash, or `none` for a plugin that keeps all of them. The plugin takes part in every capability. A broken rule is broken the way a real plugin
would: a check that is missing, a parser that is too kind, an order that is not kept.
"""

import json
import os
import re
import sys
import time

RULE = sys.argv[1]
PERFORMS = sys.argv[2]
KNOWN = ("text", "workspace_edit", "progress", "cancel", "commit_subject", "agent_report")
SELECTS = (PERFORMS, "progress", "cancel", "commit_subject", "agent_report")
LIMITS = {
    "frame_bytes": 1048576,
    "progress_frames": 128,
    "text_bytes": 65536,
    "progress_text_bytes": 1024,
    "commit_subject_bytes": 256,
}
FIELDS = {
    "text": ("input",),
    "workspace_edit": ("workspace", "instruction", "timeout_ms"),
}
PAYLOAD = {"text": "input", "workspace_edit": "instruction"}
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Refused(Exception):
    """The peer broke a rule."""


def broken(*names):
    return RULE in names


def require(holds, why, *names):
    """Holds a rule, unless it is one that is to be broken."""
    if not holds and not broken(*names):
        raise Refused(why)


# -- bytes: standard input without a buffer that would hide how it comes --


class Reader:
    def __init__(self):
        self.held = b""
        self.ended = False

    def more(self):
        # A reader that takes each piece for a whole text cannot bear a split character.
        piece = os.read(0, 65536)
        if broken("byte-by-byte"):
            piece.decode("utf-8")
        if not piece:
            self.ended = True
        self.held += piece

    def line(self, number):
        limit = LIMITS["frame_bytes"]
        start = 0
        while b"\n" not in self.held[start:]:
            start = len(self.held)
            if start > limit:
                require(False, "too long", "oversized-frame", "frame-over-limit")
            self.more()
            if self.ended:
                names = ("eof-at-once", "eof-after-initialize")[number - 1]
                if not self.held:
                    require(False, "no frame", names)
                    sys.exit(0)
                middle = ("eof-mid-initialize", "eof-mid-execute")[number - 1]
                if broken(middle):
                    sys.exit(0)
                require(False, "no LF", "no-lf-frame")
                break
        line, _, self.held = self.held.partition(b"\n")
        if len(line) > limit:
            require(False, "too long", "oversized-frame", "frame-over-limit")
            sys.exit(0)
        if len(line) == limit and broken("frame-at-limit"):
            sys.exit(0)
        if broken("largest-payload"):
            require(len(line) <= 131072, "too long for a buffer of 128 KiB")
        if broken("frames-in-one-write"):
            require(not self.held, "more than a frame")
        return line


# -- one frame: form --


def pairs(members):
    result = {}
    for name, value in members:
        raw = name
        if raw in result:
            require(False, "twice", *TWICE)
        result[name] = value
    return result


TWICE = ()


def constant(name):
    require(False, name, "non-standard-constant")
    return 1048576


def parse(line, number):
    """Reads one compact object, with the mistakes of lenient readers where they are asked for."""
    global TWICE
    second = number == 2
    raw = line
    if not line:
        require(False, "blank", "execute-blank-frame" if second else "blank-frame")
        sys.exit(0)
    if line.endswith(b"\r"):
        require(False, "CR", "execute-crlf-frame" if second else "crlf-frame")
        line = line[:-1]
    if line.startswith(b"\xef\xbb\xbf"):
        require(False, "BOM", "byte-order-mark")
        line = line[3:]
    if line.startswith(b" "):
        require(False, "space", "leading-space")
        line = line.lstrip()
    if line.endswith(b" "):
        require(False, "space", "trailing-space")
        line = line.rstrip()
    if line.endswith(b"\0"):
        require(False, "NUL", "nul-byte")
        line = line.rstrip(b"\0")
    bare = STRING.sub(b"", line)
    require(b" " not in bare, "space", "execute-non-compact-frame" if second else "non-compact-frame")
    require(b"\r" not in bare, "CR", "inner-carriage-return")
    require(not re.search(rb"[^!-~\r ]", bare) or b"\xff" in bare, "not compact")
    if bare.count(b"}{") and bare.endswith(b"}"):
        require(False, "two objects", "execute-two-objects" if second else "two-objects")
        line = line[: (len(line)) // 2]
    errors = "strict"
    if broken("invalid-utf8") and not second:
        if b"\xff" in line:
            sys.exit(0)
    if broken("payload-invalid-utf8", "payload-overlong-utf8"):
        errors = "replace"
    if broken("payload-surrogate-bytes"):
        errors = "surrogatepass"
    if errors == "replace":
        # Each of the two forgives one kind of bytes only.
        overlong = b"\xc1" in line
        if overlong != broken("payload-overlong-utf8"):
            errors = "strict"
    try:
        text = line.decode("utf-8", errors)
        if broken("payload-bad-escape"):
            text = text.replace("\\x61", "a")
        control = not broken("payload-raw-control")
        TWICE = twice(text, second)
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, strict=control)
    except (ValueError, RecursionError) as error:
        if broken("malformed-frame") and raw == b"{" or broken("deep-nesting") and raw.startswith(b"[["):
            sys.exit(0)
        raise Refused("no JSON: %s" % error)
    if broken("array-frame") and type(value) is list and len(value) == 1:
        value = value[0]
    require(type(value) is dict, "no object")
    if broken("unusual-characters"):
        require("\u2028" not in text, "a separator")
    if broken("escapes-in-strings"):
        require("\\" not in text, "an escape")
    if broken("keys-reordered"):
        require(list(value)[0] == "version", "another order")
    return value


def twice(text, second):
    """Which of the rules against repeated keys this text would break."""
    if "\\u0074ype" in text:
        return ("execute-duplicate-escaped-key",) if second else ("duplicate-escaped-key",)
    if text.count('"frame_bytes"') > 1:
        return ("limit-duplicate",)
    return ("duplicate-execute",) if second else ("duplicate-field",)


def folded(value, name, *rules):
    """Finds a field; a kind reader also finds it in another case."""
    if name not in value and broken(*rules):
        for own in list(value):
            if own.lower() == name:
                value[name] = value.pop(own)


def scalar(value, name, missing, null, default):
    """Puts a zero value where a kind reader would."""
    if name not in value and broken(missing) or name in value and value[name] is None and broken(null):
        value[name] = default


# -- frames: content --


def read_initialize(reader):
    frame = parse(reader.line(1), 1)
    folded(frame, "type", "key-case")
    scalar(frame, "version", "version-missing", "version-null", "v1")
    scalar(frame, "id", "id-missing", "id-null", "0" * 32)
    scalar(frame, "type", "type-missing", "", "initialize")
    scalar(frame, "capabilities", "capabilities-missing", "capabilities-null", [])
    scalar(frame, "limits", "limits-missing", "limits-null", dict(LIMITS))
    if frame.get("type") == "execute":
        require(False, "too early", "execute-first")
        sys.exit(0)
    require(frame.get("type") == "initialize", "type")
    require(frame.get("version") == "v1", "version", "unsupported-version")
    expected = {"version", "id", "type", "capabilities", "limits"}
    require(expected <= set(frame), "a field is missing")
    require(set(frame) <= expected, "unknown field", "unknown-field")
    session = frame["id"]
    require(type(session) is str, "id")
    pattern = r"[0-9a-f]{32}"
    pattern = r"[0-9a-fA-F]{32}" if broken("invalid-id") else pattern
    pattern = r"[0-9a-f]+" if broken("id-short") else pattern
    require(re.fullmatch(pattern, session), "id")
    offer = frame["capabilities"]
    if broken("capabilities-text") and type(offer) is str:
        offer = [offer]
    require(type(offer) is list, "capabilities")
    if broken("capability-case"):
        offer = [one.lower() if type(one) is str else one for one in offer]
    for one in offer:
        require(type(one) is str, "capability", "capability-type")
        if type(one) is str:
            require(one in KNOWN, "capability", "unsupported-capability")
    if all(type(one) is str for one in offer):
        require(len(set(offer)) == len(offer), "twice", "duplicate-capability")
    if not offer:
        require(False, "empty", "capabilities-empty", "capabilities-missing", "capabilities-null")
    elif offer == ["progress"]:
        require(False, "no operation", "capabilities-without-operation")
    if broken("all-capabilities"):
        require(len(offer) < 6 or offer[0] == "agent_report", "too many")
    if broken("capabilities-reordered"):
        require(offer[0] != "agent_report", "another order")
    limits(frame["limits"])
    return session, offer


def limits(given):
    require(type(given) is dict, "limits")
    folded(given, "frame_bytes", "limit-key-case")
    missing = set(LIMITS) - set(given)
    require(not missing, "limit missing", "limit-missing")
    require(set(given) <= set(LIMITS), "limit unknown", "limit-extra")
    if broken("limits-reordered"):
        require(list(given) == list(LIMITS), "another order")
    for name, value in given.items():
        right = LIMITS.get(name, value)
        if value is None:
            require(False, "null", "limit-null")
        elif type(value) is str:
            require(False, "text", "limit-text")
        elif type(value) is bool:
            require(False, "bool", "limit-bool")
        elif type(value) is float:
            # The parser has made one number out of `1048576.0` and of `1048576e0`.
            require(value == right, "value")
            require(False, "float", "limit-float", "limit-exponent")
        else:
            require(value == right, "value", "limit-wrong")


def read_execute(reader, session):
    frame = parse(reader.line(2), 2)
    folded(frame, "operation", "execute-key-case")
    payload = PAYLOAD[PERFORMS]
    scalar(frame, "version", "execute-version-missing", "", "v1")
    scalar(frame, "id", "execute-id-missing", "", session)
    scalar(frame, "operation", "operation-missing", "operation-null", PERFORMS)
    scalar(frame, payload, "payload-missing", "payload-null", "x")
    scalar(frame, "workspace", "workspace-missing", "workspace-null", "/work")
    scalar(frame, "timeout_ms", "timeout-missing", "timeout-null", 1000)
    kind = frame.get("type")
    if kind == "initialize":
        require(False, "again", "initialize-twice")
        sys.exit(0)
    if kind == "cancel":
        require(False, "cancel", "cancel-before-execute")
        sys.exit(0)
    require(kind == "execute", "type", "wrong-order")
    require(frame.get("version") == "v1", "version")
    if "operation" in frame and frame["operation"] != PERFORMS:
        if frame["operation"] in FIELDS:
            require(False, "operation", "operation-not-offered")
            sys.exit(0)
        require(False, "operation", "unsupported-operation")
    expected = {"version", "id", "type", "operation"}.union(FIELDS[PERFORMS])
    require(expected <= set(frame), "a field is missing")
    foreign = set(frame) - expected
    require("unknown" not in foreign, "unknown field", "execute-unknown-field")
    require(not foreign - {"unknown"}, "contradiction", "contradictory-execute")
    if frame["id"] == session.upper():
        require(False, "id", "execute-id-case")
    else:
        require(frame["id"] == session, "id", "wrong-id")
    text = frame[payload]
    require(type(text) is str, "payload", "input-type")
    text = str(text)
    if PERFORMS == "text":
        if broken("empty-input"):
            require(text, "empty")
    else:
        require(text, "empty", "instruction-empty")
        task(frame)
    try:
        require(len(text.encode("utf-8")) <= LIMITS["text_bytes"], "too long", "oversized-input")
    except UnicodeEncodeError:
        reversed_pair = text.startswith("\ude00")
        name = "payload-reversed-surrogates" if reversed_pair else "payload-lone-surrogate"
        require(False, "half a pair", name, "payload-surrogate-bytes")
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text, frame.get("workspace")


def task(frame):
    workspace, limit = frame["workspace"], frame["timeout_ms"]
    require(type(workspace) is str, "workspace")
    require(workspace.startswith("/"), "relative", "workspace-relative")
    require("\0" not in workspace, "NUL", "workspace-nul")
    if type(limit) is str:
        require(False, "text", "timeout-text")
    elif type(limit) is float:
        require(False, "float", "timeout-float", "timeout-exponent")
    else:
        require(type(limit) is int, "timeout")
        require(limit != 0, "zero", "timeout-zero")
        require(limit >= 0, "negative", "timeout-negative")
        require(limit <= 86400000, "too long", "timeout-too-long")


# -- answers --


class Writer:
    def __init__(self):
        self.session = "0" * 32

    def raw(self, data):
        if broken("slow-reader"):
            # What does not fit into the pipe at once is lost.
            os.set_blocking(1, False)
            try:
                os.write(1, data)
            except BlockingIOError:
                pass
            return
        while data:
            data = data[os.write(1, data) :]

    def send(self, kind, **fields):
        frame = {"version": "v1", "id": self.session, "type": kind, **fields}
        self.raw(json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def progress(out, selected):
    if "progress" not in selected and not broken("nothing-unselected"):
        return
    count = 129 if broken("progress-count") else 2
    for number in range(1, count + 1):
        sequence = number + 1 if broken("progress-sequence") and number > 1 else number
        sequence -= broken("progress-sequence/from-zero")
        stage = "thinking" if broken("progress-stage") else "working"
        text = "x" * (1025 if broken("progress-text") else 1024)
        out.send("progress", sequence=sequence, stage=stage, text=text)


def performed(text, workspace, selected):
    """Returns the fields of the result."""
    if PERFORMS == "text":
        return {"output": text.upper()}
    if os.path.isdir(workspace):
        with open(os.path.join(workspace, "answer.txt"), "w") as answer:
            answer.write("conformance\n")
    said = {}
    if "commit_subject" in selected or broken("nothing-unselected/subject"):
        said["commit_subject"] = "x" * (257 if broken("subject-limits") else 256)
        if broken("subject-limits/white-space"):
            said["commit_subject"] = "feat: x\u00a0"
        if broken("subject-limits/format-character"):
            said["commit_subject"] = "feat: \u202ex"
    if "agent_report" in selected:
        said["summary"] = "x" * (1025 if broken("report-limits/summary") else 1024)
        said["changes"] = ["c"] * (13 if broken("report-limits") else 12)
        if broken("report-limits/half"):
            del said["changes"]
    return said


def cancelled(reader, wait):
    """Waits for `cancel`, at most so many seconds, and says whether it came."""
    import select

    until = time.monotonic() + wait
    while b"\n" not in reader.held and not reader.ended:
        left = until - time.monotonic()
        if left <= 0 or not select.select([0], [], [], left)[0]:
            return False
        reader.more()
    return b'"cancel"' in reader.held


def serve():
    reader, out = Reader(), Writer()
    session, offer = read_initialize(reader)
    out.session = session
    selected = [one for one in SELECTS if one in offer]
    if broken("capability-type", "unsupported-capability", "capabilities-empty", "capabilities-null"):
        selected = selected or [PERFORMS]
    if broken("selection") and len(offer) == 6:
        selected.append(selected[0])
    if broken("selection/no-operation") and len(offer) == 6:
        selected.remove(PERFORMS)
    if broken("progress-place/early") and len(offer) == 6:
        out.send("progress", sequence=1, stage="started", text="")
    out.send("initialized", capabilities=selected)
    text, workspace = read_execute(reader, session)
    progress(out, selected)
    if broken("stdin-closed-early"):
        cancelled(reader, 0.5)
        if reader.ended:
            sys.exit(0)
    if "cancel" in selected:
        if broken("cancel-under-way/deaf"):
            time.sleep(0.6)
            out.send("result", **performed(text, workspace, selected))
            return leave(reader)
        if broken("cancel-under-way"):
            time.sleep(0.6)
            out.send("failure", category="cancelled")
            return leave(reader)
        if cancelled(reader, 0.1):
            category = "execution_failed" if broken("cancel-at-once") else "cancelled"
            out.send("failure", category=category)
            return leave(reader)
    fields = performed(text, workspace, selected)
    if broken("valid-session"):
        fields["more"] = 1
    if broken("identical-on-repeat"):
        noise = str(time.monotonic_ns())
        fields["output" if PERFORMS == "text" else "commit_subject"] = noise
    too_long = len(fields.get("output", "").encode()) > LIMITS["text_bytes"]
    if too_long and not broken("output-limit"):
        out.send("failure", category="execution_failed")
    elif broken("reader-gone"):
        try:
            out.send("result", **fields)
        except BrokenPipeError:
            os._exit(0)
    else:
        out.send("result", **fields)
    if broken("progress-place") and "progress" in selected:
        out.send("progress", sequence=3, stage="finalizing", text="")
    if broken("one-terminal-frame/byte"):
        out.raw(b"x")
    if broken("one-terminal-frame"):
        out.send("failure", category="cancelled")
    leave(reader)


def leave(reader):
    if broken("no-descendant/holds-output"):
        import subprocess

        subprocess.Popen(["sleep", "60"])
    if broken("no-descendant"):
        import subprocess

        null = subprocess.DEVNULL
        subprocess.Popen(["sleep", "60"], start_new_session=True, stdin=null, stdout=null, stderr=null)
    if broken("no-writes-outside"):
        with open(os.path.join(os.environ["HOME"], ".mutant"), "w") as trace:
            trace.write("x")
    if broken("exit-in-time"):
        while not reader.ended:
            reader.more()
        time.sleep(0.6)
    if broken("exit-in-time/stays"):
        time.sleep(60)


def main():
    try:
        serve()
    except Refused as reason:
        print("mutant: %s" % reason, file=sys.stderr)
        return 2
    return 0


sys.exit(main())

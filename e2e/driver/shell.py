"""The line protocol between the driver and the agent in a machine (`agent.sh`).

The agent says `hello BOOT_ID` once a boot. The driver says `SECONDS COMMAND`, the agent answers
`done OUTPUT STATUS ERRORS`. Output and errors are base64; in the command backslashes and line ends
are escaped, as bash's own `printf %b` undoes. One command at a time.
"""

import base64
import binascii
import os
import time
from dataclasses import dataclass

from .watch import Watch

# A command is one argument of bash, and the kernel takes no longer ones.
COMMAND_BYTES = 96 * 1024
# What a command may print; beyond it something is wrong with the scenario.
LINE_BYTES = 256 * 1024 * 1024
# How much longer than its own limit a command may take to be answered on a loaded host.
ANSWER_SECONDS = 60.0


class ShellError(Exception):
    """The agent is not there, or does not keep to the protocol."""


@dataclass(frozen=True)
class Reply:
    """What came of a command."""

    status: int
    output: str
    errors: str


def request(command: str, seconds: int) -> bytes:
    """The line that asks for `command`."""
    raw = command.encode()
    if len(raw) > COMMAND_BYTES:
        raise ShellError(f"a command has at most {COMMAND_BYTES} bytes, this one {len(raw)}")
    if b"\0" in raw:
        raise ShellError("a command has no zero byte")
    return b"%d %s\n" % (seconds, raw.replace(b"\\", b"\\0134").replace(b"\n", b"\\0012"))


def reply(line: bytes) -> Reply:
    """Reads an answer."""
    words = line.split(b" ")
    try:
        if len(words) != 4 or words[0] != b"done":
            raise ValueError
        return Reply(int(words[2]), _decoded(words[1]), _decoded(words[3]))
    except (ValueError, binascii.Error):
        raise ShellError(f"the agent said {line[:200]!r}") from None


def _decoded(word: bytes) -> str:
    return base64.b64decode(word, validate=True).decode(errors="replace")


class Shell:
    """One agent, reached through two descriptors (or one twice)."""

    def __init__(self, source: int, sink: int, watch: Watch) -> None:
        self._source = source
        self._sink = sink
        self._watch = watch
        self._buffer = bytearray()
        # Answers that are still to come; whoever waited for the earlier ones was interrupted.
        self._owed = 0

    def hello(self, seconds: float) -> str:
        """Waits for the agent of a boot and returns the id of that boot."""
        line = self._line(time.monotonic() + seconds, "the machine is not up")
        word, _, boot = line.partition(b" ")
        if word != b"hello":
            raise ShellError(f"instead of a greeting the agent said {line[:200]!r}")
        self._owed = 0
        return boot.decode(errors="replace")

    def run(self, command: str, seconds: int) -> Reply:
        """Runs a command that the machine ends after `seconds`."""
        self._watch.check()
        asked = request(command, seconds)
        self._owed += 1
        self._send(asked)
        until = time.monotonic() + seconds + ANSWER_SECONDS
        while True:
            answer = reply(self._line(until, f"no answer to {command!r}"))
            self._owed -= 1
            if self._owed == 0:
                return answer

    def _send(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._sink, left) :]

    def _line(self, until: float, problem: str) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            left = until - time.monotonic()
            if left <= 0:
                raise ShellError(f"{problem} after the time given")
            if not self._watch.wait(left, self._source):
                continue
            piece = os.read(self._source, 1 << 20)
            if not piece:
                # The console's reader knows more: give it a moment to say how it ended.
                self._watch.sleep(1)
                raise ShellError("the agent is gone")
            self._buffer += piece
            if len(self._buffer) > LINE_BYTES:
                raise ShellError(f"an answer of more than {LINE_BYTES} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

"""A machine as a script sees it: the NixOS test driver's methods, on top of an agent.

What needs a machine of one's own (`reboot`, `crash`, `block`, ...) is in `qemu.py` only, as there.
"""

import base64
import re
import shlex
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import IO

from .log import say
from .shell import Shell
from .watch import Watch

# The NixOS driver's own figures.
TIMEOUT = 900
RETRY_SECONDS = 1.0
# One chunk of a file on its way into a machine, as base64 within one command.
CHUNK = 48 * 1024
PANIC = re.compile(r"Kernel panic - not syncing")


class AssertionFailed(Exception):
    """A machine is not as the script wants it."""


def retry(check: Callable[[bool], bool], watch: Watch, timeout: float = TIMEOUT) -> None:
    """Asks `check` each second until it agrees; its argument says that this is the last time."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if check(False):
            return
        watch.sleep(RETRY_SECONDS)
    if not check(True):
        raise AssertionFailed(f"action timed out after {timeout} seconds")


class Machine(ABC):
    """One node of a scenario."""

    def __init__(self, name: str, watch: Watch, logs: Path, out: Path) -> None:
        self.name = name
        self.booted = False
        self._watch = watch
        self._logs = logs
        self._out = out
        self._shell: Shell | None = None
        self._connected = False
        self._ending = False
        self._console = ""
        self._spoke = threading.Condition()
        self._reader: threading.Thread | None = None

    # What a backend adds.

    @abstractmethod
    def _boot(self, allow_reboot: bool) -> tuple[subprocess.Popen[bytes], Shell]:
        """Starts the machine; its console is the process's standard output."""

    @abstractmethod
    def release(self) -> None:
        """Ends the machine without ceremony; nothing of it runs afterwards."""

    # Starting.

    def start(self, allow_reboot: bool = False) -> None:
        """Starts the machine and does not wait for it."""
        if self.booted:
            return
        self.log("starting")
        self._ending = False
        self._connected = False
        process, self._shell = self._boot(allow_reboot)
        self.booted = True
        console = process.stdout
        assert console is not None
        self._reader = threading.Thread(target=self._listen, args=(process, console), daemon=True)
        self._reader.start()

    def connect(self) -> None:
        """Starts the machine if it is off and waits for its agent."""
        self.start()
        if self._connected:
            return
        assert self._shell is not None
        begun = time.monotonic()
        self._shell.hello(TIMEOUT)
        self._connected = True
        self.log(f"is up, waited {time.monotonic() - begun:.1f} s")

    def _listen(self, process: subprocess.Popen[bytes], console: IO[bytes]) -> None:
        """Follows the console to its end, which is the machine's."""
        reason = ""
        log = self._logs / f"{self.name}.console"
        with console, log.open("ab", buffering=0) as kept:
            for line in console:
                kept.write(line)
                text = line.decode(errors="replace").rstrip()
                with self._spoke:
                    self._console += text + "\n"
                    self._spoke.notify_all()
                if not reason and PANIC.search(text):
                    reason = text
                    self._watch.report(self.name, text)
        status = process.wait()
        self.booted = False
        if not self._ending and not reason:
            self._watch.report(self.name, f"it ended by itself with status {status}")

    # Commands.

    def execute(
        self,
        command: str,
        check_return: bool = True,
        check_output: bool = True,
        timeout: int | None = TIMEOUT,
    ) -> tuple[int, str]:
        """Runs a command as root; returns its exit status and standard output."""
        self.connect()
        assert self._shell is not None
        if not check_output:
            command = f"({command}) >/dev/null"
        reply = self._shell.run(command, timeout or 24 * 3600)
        for line in reply.errors.splitlines():
            self.log(f"# {line}")
        return (reply.status if check_return else -2), reply.output

    def succeed(self, *commands: str, timeout: int | None = TIMEOUT) -> str:
        """Runs commands that must exit with 0; returns their output."""
        output = ""
        for command in commands:
            self.log(f"must succeed: {command}")
            status, said = self.execute(command, timeout=timeout)
            if status != 0:
                raise AssertionFailed(
                    f"{self.name}: command `{command}` failed (exit code {status})\n{said}"
                )
            output += said
        return output

    def fail(self, *commands: str, timeout: int | None = TIMEOUT) -> str:
        """Runs commands that must not exit with 0; returns their output."""
        output = ""
        for command in commands:
            self.log(f"must fail: {command}")
            status, said = self.execute(command, timeout=timeout)
            if status == 0:
                raise AssertionFailed(f"{self.name}: command `{command}` unexpectedly succeeded")
            output += said
        return output

    def wait_until_succeeds(self, command: str, timeout: int = TIMEOUT) -> str:
        """Repeats a command each second until it exits with 0; returns its output."""
        return self._wait_until(command, timeout, lambda status: status == 0)

    def wait_until_fails(self, command: str, timeout: int = TIMEOUT) -> str:
        """Repeats a command each second until it does not exit with 0."""
        return self._wait_until(command, timeout, lambda status: status != 0)

    def _wait_until(self, command: str, timeout: int, good: Callable[[int], bool]) -> str:
        self.log(f"waiting for: {command}")
        output = ""

        def check(last: bool) -> bool:
            nonlocal output
            status, output = self.execute(command, timeout=timeout)
            if last and not good(status):
                self.log(f"last output: {output}")
            return good(status)

        try:
            retry(check, self._watch, timeout)
        except AssertionFailed as error:
            raise AssertionFailed(f"{self.name}: `{command}`: {error}\n{output}") from None
        return output

    # Units.

    def systemctl(self, query: str, user: str | None = None) -> tuple[int, str]:
        """Runs `systemctl`, for a user's manager if one is named."""
        if user is None:
            return self.execute(f"systemctl {query}")
        command = f"XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user {query}"
        return self.execute(f"su -l {user} --shell /bin/sh -c {shlex.quote(command)}")

    def get_unit_info(self, unit: str, user: str | None = None) -> dict[str, str]:
        """All properties of a unit."""
        status, output = self.systemctl(f'--no-pager show "{unit}"', user)
        if status != 0:
            raise AssertionFailed(f"{self.name}: cannot show unit `{unit}` (exit code {status})")
        return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)

    def get_unit_property(self, unit: str, property: str, user: str | None = None) -> str:
        """One property of a unit."""
        info = self.get_unit_info(unit, user)
        if property not in info:
            raise AssertionFailed(f"{self.name}: unit `{unit}` has no property `{property}`")
        return info[property]

    def require_unit_state(self, unit: str, require_state: str = "active") -> None:
        """Insists on a unit's state now."""
        state = self.get_unit_property(unit, "ActiveState")
        if state != require_state:
            raise AssertionFailed(f"{self.name}: unit `{unit}` is `{state}`, not `{require_state}`")

    def wait_for_unit(self, unit: str, user: str | None = None, timeout: int = TIMEOUT) -> None:
        """Waits until a unit is active; one that failed, or that nobody starts, ends the wait."""
        self.log(f"waiting for unit {unit}")

        def check(_last: bool) -> bool:
            info = self.get_unit_info(unit, user)
            state = info.get("ActiveState")
            if state == "failed":
                raise AssertionFailed(f'{self.name}: unit "{unit}" reached state "{state}"')
            if state == "inactive":
                jobs = self.systemctl("list-jobs --full 2>&1", user)[1]
                if "No jobs" in jobs:
                    info = self.get_unit_info(unit, user)
                    if info.get("ActiveState") == state:
                        raise AssertionFailed(
                            f'{self.name}: unit "{unit}" is inactive and there are no pending jobs'
                        )
            return state == "active"

        retry(check, self._watch, timeout)

    def start_job(self, jobname: str, user: str | None = None) -> tuple[int, str]:
        """Starts a unit."""
        return self.systemctl(f"start {jobname}", user)

    def stop_job(self, jobname: str, user: str | None = None) -> tuple[int, str]:
        """Stops a unit."""
        return self.systemctl(f"stop {jobname}", user)

    # Files and ports.

    def wait_for_file(self, filename: str, timeout: int = TIMEOUT) -> None:
        """Waits until a path exists."""
        self.wait_until_succeeds(f"test -e {shlex.quote(filename)}", timeout)

    def wait_for_open_port(
        self, port: int, addr: str = "localhost", timeout: int = TIMEOUT
    ) -> None:
        """Waits until something accepts connections."""
        self.wait_until_succeeds(f"(: </dev/tcp/{addr}/{port}) 2>/dev/null", timeout)

    def wait_for_closed_port(
        self, port: int, addr: str = "localhost", timeout: int = TIMEOUT
    ) -> None:
        """Waits until nothing accepts connections."""
        self.wait_until_fails(f"(: </dev/tcp/{addr}/{port}) 2>/dev/null", timeout)

    def copy_from_host(self, source: str, target: str) -> None:
        """Copies a file or a folder of the host into the machine, as `target`."""
        path = Path(source)
        words = ["tar", "--create", "--owner=0", "--group=0", "--directory", str(path.parent)]
        packed = subprocess.run([*words, "--", path.name], check=True, capture_output=True).stdout
        archive, unpacked = "/tmp/.e2e-copy", "/tmp/.e2e-unpacked"
        self.succeed(f"rm -rf {archive} {unpacked} && mkdir -m 0700 {unpacked}")
        for start in range(0, len(packed), CHUNK):
            text = base64.b64encode(packed[start : start + CHUNK]).decode()
            status, _ = self.execute(f"(umask 077; base64 -d >>{archive}) <<'E'\n{text}\nE")
            if status != 0:
                raise AssertionFailed(f"{self.name}: cannot copy `{source}`")
        self.succeed(
            f"tar -xf {archive} -C {unpacked} && mkdir -p $(dirname {shlex.quote(target)})"
            f" && cp -rT {unpacked}/{shlex.quote(path.name)} {shlex.quote(target)}"
            f" && rm -rf {archive} {unpacked}"
        )

    def copy_from_machine(self, source: str, target_dir: str = "") -> None:
        """Copies a file or a folder out, into `target_dir` of the driver's folder of results."""
        path = Path(source)
        target = self._out / target_dir
        target.mkdir(parents=True, exist_ok=True)
        text = self.succeed(
            f"tar -C {shlex.quote(str(path.parent))} -c -- {shlex.quote(path.name)} | base64 -w0"
        )
        words = ["tar", "--extract", "--no-same-owner", "--directory", str(target)]
        subprocess.run(words, input=base64.b64decode(text), check=True)

    # The rest.

    def wait_for_console_text(self, regex: str, timeout: int | None = None) -> None:
        """Waits until the console has said what matches."""
        self.log(f"waiting for {regex!r} on the console")
        until = time.monotonic() + (timeout or TIMEOUT)
        while True:
            with self._spoke:
                if re.search(regex, self._console):
                    return
            self._watch.check()
            if time.monotonic() > until:
                raise AssertionFailed(f"{self.name}: {regex!r} was not on the console in time")
            with self._spoke:
                self._spoke.wait(0.2)

    def sleep(self, secs: int) -> None:
        """Sleeps by the machine's own clock."""
        self.succeed(f"sleep {secs}")

    def log(self, message: str) -> None:
        """Writes a line that names the machine."""
        say(f"{self.name}: {message}")

    def keep_logs(self, units: list[str]) -> None:
        """Writes the journal, and the log of each unit, beside the console's."""
        folder = self._logs / f"{self.name}.units"
        folder.mkdir(exist_ok=True)
        _, listed = self.execute(
            "systemctl list-units --all --no-legend --plain --full", timeout=60
        )
        (folder / "LIST").write_text(listed)
        _, journal = self.execute("journalctl --no-pager -o short-precise", timeout=60)
        (self._logs / f"{self.name}.journal").write_text(journal)
        names = {line.split()[0] for line in listed.splitlines() if line}
        for unit in sorted(name for name in names if name.endswith((".service", ".socket"))):
            _, text = self.execute(
                f"journalctl --no-pager -o short-precise -u '{unit}'", timeout=60
            )
            if "-- No entries --" in text:
                continue
            (folder / unit.replace("/", "_")).write_text(text)
            if unit in units:
                for line in text.splitlines()[-25:]:
                    say(f"{self.name} | {line}")

"""Runs a scenario's script with the names that the NixOS driver gives it, and counts."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .deadline import DeadlinePassed
from .log import say
from .machine import TIMEOUT, Machine, retry
from .watch import Watch


class Script:
    """One run of a script."""

    def __init__(self, path: Path, machines: list[Machine], watch: Watch) -> None:
        self.passed = 0
        self.failed = 0
        self._path = path
        self._machines = machines
        self._watch = watch
        # An error passes through every enclosing subtest and is counted once.
        self._counted: BaseException | None = None

    def run(self) -> bool:
        """Runs the script to its end or first error; says whether all was well."""
        try:
            exec(compile(self._path.read_text(), str(self._path), "exec"), self._names())
            self._watch.check()
        except (Exception, KeyboardInterrupt, DeadlinePassed) as error:
            self._show(error)
            if error is not self._counted:
                self.failed += 1
        if self.passed + self.failed == 0:
            self.passed = 1
        return self.failed == 0

    def _names(self) -> dict[str, object]:
        names: dict[str, object] = {
            "__name__": "__main__",
            "machines": self._machines,
            "start_all": self._start_all,
            "subtest": self._subtest,
            "retry": self._retry,
        }
        for machine in self._machines:
            names[machine.name.replace("-", "_")] = machine
        return names

    def _start_all(self) -> None:
        for machine in self._machines:
            machine.start()

    def _retry(self, fn: Callable[[bool], bool], timeout: int = TIMEOUT) -> None:
        retry(fn, self._watch, timeout)

    @contextmanager
    def _subtest(self, name: str) -> Iterator[None]:
        say(f"subtest: {name}")
        try:
            yield
        except (Exception, KeyboardInterrupt, DeadlinePassed) as error:
            say(f"subtest FAILED: {name}")
            if error is not self._counted:
                self.failed += 1
                self._counted = error
            raise
        self.passed += 1
        say(f"subtest passed: {name}")

    def _show(self, error: BaseException) -> None:
        """Names the lines of the script only: the driver's own say nothing to its author."""
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(self._path)
        ]
        lines = self._path.read_text().splitlines()
        for frame in frames:
            line = frame.lineno or 0
            source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            print(f"  {self._path.name}:{line}: {source}", file=sys.stderr)
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        if not frames:
            traceback.print_exception(error)

"""The deaths of machines, and waiting that a death ends."""

import os
import select
import threading
import time


class MachineDied(Exception):
    """A machine ended that nobody had asked to."""


class Watch:
    """Hears of every death, from any thread; whoever waits on it hears at once."""

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._deaths: list[str] = []

    def report(self, name: str, reason: str) -> None:
        """Notes that the machine `name` is dead."""
        with self._lock:
            self._deaths.append(f"{name} died: {reason}")
        os.eventfd_write(self._event, 1)

    def clear(self) -> None:
        """Forgets the deaths: the living are asked for their logs."""
        with self._lock:
            if self._deaths:
                os.eventfd_read(self._event)
            self._deaths.clear()

    def check(self) -> None:
        """Raises `MachineDied` if a machine is dead."""
        with self._lock:
            if self._deaths:
                raise MachineDied("; ".join(self._deaths))

    def wait(self, seconds: float, fd: int | None = None) -> bool:
        """Waits until `fd` is readable, a death, or the end of the time; says whether `fd` is."""
        watched = [self._event] if fd is None else [self._event, fd]
        ready = select.select(watched, [], [], max(0.0, seconds))[0]
        # What a machine still said before it died is read first.
        if fd in ready:
            return True
        self.check()
        return False

    def sleep(self, seconds: float) -> None:
        """Sleeps, unless a machine dies."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.wait(left)

"""The time that a whole run may take."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

# The NixOS driver's own figure.
SECONDS = 3600
# What collecting logs may take afterwards.
LOG_SECONDS = 300.0


class DeadlinePassed(BaseException):
    """The run takes too long. No `Exception`, so that no `except` of a script swallows it."""


@contextmanager
def deadline(seconds: float, again: float = LOG_SECONDS) -> Iterator[None]:
    """Raises `DeadlinePassed` in the main thread after `seconds`, and then each `again` seconds."""

    def passed(_signal: int, _frame: object) -> None:
        raise DeadlinePassed(f"the run is not over after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, passed)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, again)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

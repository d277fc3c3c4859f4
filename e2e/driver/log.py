"""Lines with the time since the start, on standard output."""

import time

_begun = time.monotonic()


def say(message: str) -> None:
    """Writes a line."""
    print(f"[{time.monotonic() - _begun:7.2f}] {message}", flush=True)

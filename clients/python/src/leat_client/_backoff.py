"""The waits between attempts."""

from __future__ import annotations

import random

INITIAL = 0.5
FACTOR = 1.5
LONGEST = 10.0
ATTEMPTS = 15  # waits that grow; each later one is PROBE
PROBE = 30.0


class Backoff:
    """Computes waits, in seconds, that grow with each failure."""

    def __init__(self) -> None:
        self.failures = 0

    def next(self, at_least: float = 0.0) -> float:
        """Return the wait after one more failure.

        It is shortened by up to a half at random, so that clients that were disconnected at the same time don't return at the same
        time. If the gateway asks for a longer wait, that is used, and extended at random for the same reason.
        """
        self.failures += 1
        wait = PROBE if self.failures > ATTEMPTS else min(INITIAL * FACTOR ** (self.failures - 1), LONGEST)
        return max(wait * (1 - random.random() / 2), at_least * (1 + random.random() / 2))

    def reset(self) -> None:
        self.failures = 0

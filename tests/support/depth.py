"""How many random examples a test draws: few in every run, ten times as many with `--depth deep`."""

import os

DEEP = os.environ.get("DEPTH") == "deep"


def examples(count: int) -> int:
    """`count` examples, or ten times as many in a deep run."""
    return count * 10 if DEEP else count

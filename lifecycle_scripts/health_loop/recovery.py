"""Requests of this node to HyperPod on this boot: what was asked, when and how often.

HyperPod reads the state and the reason of a node, and reports nothing about a request that it ignores. What
someone else has asked for is not ours to repeat.
"""

import contextlib
import os
import time

import place
from known import ACTION_REBOOT, ACTION_REPLACE

_FILE = "request.json"
_TICK_SECONDS = float(os.environ.get("ULTRACLUSTER_HEALTH_TICK", "15"))
_FIRST_SECONDS = {ACTION_REBOOT: 20 * _TICK_SECONDS, ACTION_REPLACE: 240 * _TICK_SECONDS}
"""A reboot takes 1 to 3 minutes, a replacement 20 to 30 (SageMaker Developer Guide, HyperPod resiliency)."""


def asked(reason, boot):
    """Notes that it was asked for now."""
    before = of(reason, boot)
    tries = before["tries"] + 1 if before else 1
    place.write(place.STATE / _FILE, {"reason": reason, "boot": boot, "tries": tries, "at": int(time.time())})


def of(reason, boot):
    """The request of this boot with that reason; None where this node made none."""
    kept = place.read(place.STATE / _FILE, {})
    if reason not in _FIRST_SECONDS:
        return None
    numbers = all(type(kept.get(key)) is int and kept[key] > 0 for key in ("tries", "at"))
    return kept if numbers and boot and (kept.get("reason"), kept.get("boot")) == (reason, boot) else None


def is_due(kept):
    """True where it has had its time; twice as long each time."""
    return place.elapsed(kept["at"]) >= _FIRST_SECONDS[kept["reason"]] * 2 ** (kept["tries"] - 1)


def forget():
    """The node is in service again: a request of before is over."""
    with contextlib.suppress(OSError):
        (place.STATE / _FILE).unlink()

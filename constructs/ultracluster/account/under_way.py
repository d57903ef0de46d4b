"""Requests to AWS that wait for their answer, so that a command can say what it waits for.

Light: nothing of the SDK is imported here.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

_LOCK = Lock()
_OPEN: dict[int, tuple[Any, str]] = {}
"""By the identity of a request's context, which is kept here so that no other object gets the same one."""


def watch(events: Any) -> None:
    """Note every request of the clients that a session makes from now on.

    Args:
        events: the session's, `boto3.Session.events`.
    """
    events.register_first("before-call", _begin)  # others may answer, and end the round
    events.register("after-call", _end)
    events.register("after-call-error", _end)


def request() -> str:
    """The request that waits longest, as `ec2 DescribeInstances`; empty while there is none."""
    with _LOCK:
        return next((words for _, words in _OPEN.values()), "")


def forget() -> None:
    """A new command begins: what has broken off without an end is under way no more."""
    with _LOCK:
        _OPEN.clear()


def _begin(model: Any, context: Any, **_: Any) -> None:
    with _LOCK:
        _OPEN[id(context)] = (context, f"{model.service_model.service_name} {model.name}")


def _end(context: Any, **_: Any) -> None:
    with _LOCK:
        _OPEN.pop(id(context), None)

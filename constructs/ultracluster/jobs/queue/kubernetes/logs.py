# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""What one pod of a job prints, piece by piece, over restarts of its container and of its pod.

The API has no offset: a log can be had from a whole second on. Its lines then stand in the order in which
they were written, so what was read already is counted, not compared: times of stdout and stderr cross each
other. A place of a job (its rank) has a chain of sources: each pod that was made for it, the container before
its last restart, and the one now. Kubernetes forgets a pod's log with the pod; what was not read is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import RefusedError
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.queue.kubernetes.state import container_states, place_of, ranks_of
from ultracluster.jobs.queue.protocol import LogPart

Manifest = dict[str, Any]

PART = 1 << 18
"""Bytes of one answer; more where a second of a log has more."""
MOST = 1 << 26
CROSSING = timedelta(seconds=2)
"""By which the times of lines that follow each other may differ the wrong way round."""
_SECOND = "2026-11-23T15:00:00"


@dataclass(frozen=True, slots=True)
class Source:
    """One run of a container."""

    namespace: str
    pod: str
    uid: str
    container: str
    instance: int
    previous: bool
    ended: str
    """How it ended, in words; empty while it may print more."""
    started: bool


@dataclass(slots=True)
class Cursor:
    """Where a reader is: a log from a second on begins with the same lines whenever it is asked for."""

    uid: str = ""
    instance: int = 0
    second: str = ""
    """A little before the latest line that was read, as `2026-11-23T15:00:00`; empty at the beginning."""
    seen: int = 0
    """Lines that were read of the log from this second on."""

    def __str__(self) -> str:
        return json.dumps(list(asdict(self).values()), separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Read one.

        Raises:
            AccountError: no reader had it.
        """
        try:
            uid, instance, second, seen = json.loads(text)
            if second and not _is_time(second):
                raise ValueError
            return cls(str(uid), int(instance), str(second), max(0, int(seen)))
        except (ValueError, TypeError):
            raise AccountError("the place in the log is not one that was handed out: begin again") from None


def sources(pods: Sequence[Manifest]) -> list[Source]:
    """The chain of one place of a job, the oldest first."""
    found: list[Source] = []
    for pod in sorted(pods, key=lambda pod: str(pod.get("metadata", {}).get("creationTimestamp", ""))):
        meta, status = pod["metadata"], pod.get("status") or {}
        containers = pod.get("spec", {}).get("containers") or [{}]
        name = str(containers[0].get("name", ""))
        state = next(
            (state for state in container_states(pod) if state.get("name") == name), dict[str, Any]()
        )
        restarts = state.get("restartCount")
        restarts = restarts if isinstance(restarts, int) else 0
        now, last = state.get("state") or {}, state.get("lastState") or {}
        over = now.get("terminated") or {}
        ended = _ended(over) if over else ""
        if not ended and status.get("phase") in ("Succeeded", "Failed"):
            ended = str(status.get("reason") or status["phase"])
        place = str(meta["namespace"]), str(meta["name"]), str(meta.get("uid", "")), name
        if restarts:
            found.append(Source(*place, restarts - 1, True, _ended(last.get("terminated") or {}), True))
        found.append(Source(*place, restarts, False, ended, bool(over or "running" in now or ended)))
    return found


def of_place(pods: Sequence[Manifest], part: str) -> tuple[list[Manifest], str]:
    """Pods of one place of a job, and what is wrong with the question.

    Args:
        part: a rank, the name of a pod or of a node; the first place where empty.
    """
    if not pods:
        return [], ""
    ranks = ranks_of(pods)
    if not part:
        first = min(ranks)
        return [pod for pod in pods if place_of(pod) == first], ""
    if part.isascii() and part.isdecimal():
        found = [pod for pod in pods if ranks[place_of(pod)] == int(part)]
        known = ranks.values()
        return found, "" if found else f"there is no rank {part}: {min(known)} to {max(known)}"
    named = [
        pod for pod in pods if pod["metadata"]["name"] == part or pod.get("spec", {}).get("nodeName") == part
    ]
    if named:
        wanted = {place_of(pod) for pod in named}
        return [pod for pod in pods if place_of(pod) in wanted], ""
    known = ", ".join(sorted(one_line(str(pod["metadata"]["name"])) for pod in pods)[:8])
    return [], f"no pod and no node of the job is called `{one_line(part)}`: {known}"


def read(
    ask: Callable[[str], bytes], chain: Sequence[Source], after: str, *, lines: int | None, over: bool
) -> LogPart:
    """The next piece.

    Args:
        ask: answers a path of the API.
        chain: of one place.
        after: cursor of the piece before.
        lines: how many of the last to begin with.
        over: the job has ended: nothing more comes.
    """
    if not chain:
        return LogPart(
            b"", after, note="its pods are gone, and their logs with them" if over else "it has no pod yet"
        )
    cursor = Cursor.of(after) if after else Cursor()
    at = _position(chain, cursor, lines)
    now = chain[at]
    note = ""
    if (now.uid, now.instance) != (cursor.uid, cursor.instance):
        if cursor.uid:
            note = _passed(chain, at, cursor)
        cursor = Cursor(now.uid, now.instance)
    if not now.started:
        return LogPart(b"", str(cursor) if after else "", note=note or "its container has not started")
    data, more = _piece(ask, now, cursor, lines if not after else None)
    following = bool(chain[at + 1 :])
    if not data and not more and following and now.ended:
        cursor = Cursor(chain[at + 1].uid, chain[at + 1].instance)
        how = f"({now.pod}: {now.ended}; {chain[at + 1].pod} follows)\n"
        return LogPart(how.encode(), str(cursor), more=chain[at + 1].started)
    return LogPart(data, str(cursor), more=more or (following and bool(data)), note=note)


def _position(chain: Sequence[Source], cursor: Cursor, lines: int | None) -> int:
    """Return which source is to be read."""
    for index, one in enumerate(chain):
        if (one.uid, one.instance) == (cursor.uid, cursor.instance):
            return index
    if cursor.uid:
        # its source is gone: what was made after it, in the same pod or later
        later = [
            index
            for index, one in enumerate(chain)
            if one.uid == cursor.uid and one.instance > cursor.instance
        ]
        return later[0] if later else _first_of_newest(chain)
    if lines is None:
        return 0
    return len(chain) - 1 if chain[-1].started or len(chain) == 1 else len(chain) - 2


def _first_of_newest(chain: Sequence[Source]) -> int:
    newest = chain[-1].uid
    return next(index for index, one in enumerate(chain) if one.uid == newest)


def _passed(chain: Sequence[Source], at: int, cursor: Cursor) -> str:
    del cursor
    return f"the pod that was read is gone, and the rest of its log; {chain[at].pod} follows"


def _piece(
    ask: Callable[[str], bytes], source: Source, cursor: Cursor, lines: int | None
) -> tuple[bytes, bool]:
    """New bytes of a source; the cursor moves on with them. And whether there is more already."""
    if lines is not None and not cursor.second:
        return _tail(ask, source, cursor, lines), False
    limit = PART
    while True:
        found, cut = _lines(ask, source, limit, since=cursor.second)
        fresh = found[cursor.seen :]
        if not fresh and len(found) < cursor.seen and not cut:
            fresh = found  # the node began a new file
        if fresh or not cut or limit >= MOST:
            break
        limit *= 4  # a single line, or a few seconds, are longer than that
    if fresh:
        _move(cursor, found)
    return b"".join(text for _, text in fresh), cut and bool(fresh)


def _tail(ask: Callable[[str], bytes], source: Source, cursor: Cursor, lines: int) -> bytes:
    """The last lines; the cursor stands behind them."""
    tail, _ = _lines(ask, source, PART, tail=lines)
    if tail:
        _move(cursor, tail)
        whole, _ = _lines(ask, source, MOST, since=cursor.second)
        own = tail[-max(1, cursor.seen) :]
        ends = range(len(whole), len(own) - 1, -1)
        cursor.seen = next((end for end in ends if whole[end - len(own) : end] == own), len(whole))
    return b"".join(text for _, text in tail)


def _move(cursor: Cursor, read: Sequence[tuple[str, bytes]]) -> None:
    """Stand behind these lines, which are all that were read since the cursor's second."""
    last = datetime.fromisoformat(max(second for second, _ in read)) - CROSSING
    cursor.second = max(cursor.second, last.isoformat(timespec="seconds"))
    cursor.seen = sum(second >= cursor.second for second, _ in read)


def _lines(
    ask: Callable[[str], bytes], source: Source, limit: int, *, since: str = "", tail: int | None = None
) -> tuple[list[tuple[str, bytes]], bool]:
    """Whole lines, each with its second; and whether the answer was cut off."""
    query: dict[str, str | int] = {"container": source.container, "timestamps": "true", "limitBytes": limit}
    if source.previous:
        query["previous"] = "true"
    if since:
        query["sinceTime"] = f"{since}Z"
    if tail is not None:
        query["tailLines"] = tail
        del query["limitBytes"]  # it cuts the end off
    path = f"/api/v1/namespaces/{source.namespace}/pods/{source.pod}/log?{urlencode(query)}"
    try:
        raw = ask(path)
    except RefusedError as error:
        if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):  # it starts, or went this moment
            return [], False
        raise
    cut = "limitBytes" in query and len(raw) >= limit
    if cut and (limit < MOST or b"\n" in raw):
        raw = raw[: raw.rfind(b"\n") + 1]
    found: list[tuple[str, bytes]] = []
    for line in raw.split(b"\n"):
        stamp, blank, rest = line.partition(b" ")
        second = stamp[: len(_SECOND)].decode("ascii", "replace")
        if blank and stamp[-1:] == b"Z" and _is_time(second):
            found.append((second, rest + b"\n"))
        elif line and found:
            found[-1] = (found[-1][0], found[-1][1] + line + b"\n")
    return found, cut


def _is_time(text: str) -> bool:
    try:
        return len(text) == len(_SECOND) and text[10] == "T" and bool(datetime.fromisoformat(text))
    except (ValueError, TypeError):
        return False


def _ended(over: Manifest) -> str:
    if not over:
        return "it ended"
    return f"{one_line(str(over.get('reason') or 'ended'))}, exit code {one_line(str(over.get('exitCode')))}"


__all__ = ["Cursor", "Source", "of_place", "read", "sources"]

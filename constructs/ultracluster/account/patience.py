"""Limits on what a command accepts from an endpoint: silence, endless pages, answers that AWS never sends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any

from botocore import exceptions as known  # pyright: ignore[reportMissingTypeStubs]
from botocore.parsers import ResponseParserError  # pyright: ignore[reportMissingTypeStubs]

SILENCE = 20
"""Seconds without a byte after which a read ends; a call that buys or creates waits for `LONG_SILENCE`."""
LONG_SILENCE = 90
RETRY_UNTIL = 8.0
"""Seconds after its start until which a request without an answer is sent again: with one more silence it
ends within 30 seconds."""
PAUSE = 1.0
MOST_PAGES = 1_000

_NO_ANSWER: tuple[type[Exception], ...] = (
    known.ReadTimeoutError,
    known.ConnectTimeoutError,
    known.ConnectionClosedError,
    known.EndpointConnectionError,
    known.ProxyConnectionError,
    known.ResponseStreamingError,
    known.IncompleteReadError,
)
_STARTED = "ultracluster_started"


def watch(events: Any, clock: Callable[[], float] = time.monotonic) -> None:
    """End requests of a session's clients that get no answer, instead of sending each eight times.

    Throttling and faults of AWS are answers, and are retried as before.

    Args:
        events: the session's, `boto3.Session.events`.
        clock: seconds.
    """

    def begin(context: dict[str, Any], **_: Any) -> None:
        context[_STARTED] = clock()

    def needs_retry(
        caught_exception: Exception | None, request_dict: dict[str, Any], **_: Any
    ) -> float | None:
        context = request_dict["context"]
        if not isinstance(caught_exception, _NO_ANSWER) or _is_sent_once(context):
            return None
        if clock() - context.get(_STARTED, -RETRY_UNTIL) >= RETRY_UNTIL:
            raise caught_exception
        return PAUSE

    events.register_first("before-call", begin)
    events.register_first("needs-retry", needs_retry)


def _is_sent_once(context: dict[str, Any]) -> bool:
    retries: dict[str, Any] = getattr(context.get("client_config"), "retries", None) or {}
    return retries.get("total_max_attempts") == 1


def guard(client: Any, patient: Callable[[], Any]) -> Any:
    """The same client, whose answers and pages are held to what AWS sends.

    Args:
        patient: creates a client of the same service that waits for `LONG_SILENCE`, for calls that change
            something.
    """
    paginator = client.get_paginator
    connections = client._endpoint.http_session = _Connections(client._endpoint.http_session, patient)

    def checked(operation: str, arguments: dict[str, Any]) -> Answer:
        with connections.chosen(changes=not operation.startswith(_READS)):
            try:
                return Answer(operation, client.__class__._make_api_call(client, operation, arguments))
            except (KeyError, TypeError, AttributeError, IndexError) as error:  # a page that parses as XML
                raise ResponseParserError(f"{operation}: {error!r}") from None

    def bounded(operation: str) -> _Paginator:
        return _Paginator(paginator(operation), operation)

    client._make_api_call, client.get_paginator = checked, bounded
    return client


_READS = ("Describe", "List", "Get", "Search", "Filter", "Simulate", "Head", "Lookup", "Query", "BatchGet")


class _Connections:
    """The HTTP sessions of a client: one for reads, and one that waits longer."""

    def __init__(self, quick: Any, patient: Callable[[], Any]) -> None:
        self._quick = quick
        self._patient = cache(lambda: patient()._endpoint.http_session)
        self._thread = local()

    @contextmanager
    def chosen(self, *, changes: bool) -> Generator[None]:
        self._thread.changes = changes
        try:
            yield
        finally:
            self._thread.changes = False

    def send(self, request: Any) -> Any:
        return (self._patient() if getattr(self._thread, "changes", False) else self._quick).send(request)

    def close(self) -> None:
        self._quick.close()


class Answer(dict[str, Any]):
    """An answer whose missing parts raise `ResponseParserError`, not KeyError."""

    def __init__(self, operation: str, content: dict[str, Any]) -> None:
        super().__init__(content)
        self._operation = operation

    def __missing__(self, key: str) -> Any:
        raise ResponseParserError(f"{self._operation}: the answer has no {key}")


class _Paginator:
    """A paginator of botocore, which refuses a repeated token by itself."""

    def __init__(self, paginator: Any, operation: str) -> None:
        self._paginator = paginator
        self._operation = operation

    def paginate(self, **arguments: Any) -> Iterator[Any]:
        """
        Raises:
            PaginationError: there are more than `MOST_PAGES` pages, or a token comes twice.
        """
        for number, page in enumerate(self._paginator.paginate(**arguments), 1):
            if number > MOST_PAGES:
                raise known.PaginationError(message=f"{self._operation} has more than {MOST_PAGES:,} pages")
            yield page

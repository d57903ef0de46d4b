"""Endpoints that do not answer, answer endlessly, or are not AWS: one line, soon, and nothing sent twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import PaginationError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from ultracluster.account import patience
from ultracluster.account.aws import AWS_ERRORS, Account, explain

PAGE = b"<html><body>Please log in</body></html>"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setattr("time.sleep", lambda _: None)


@contextmanager
def endpoint(monkeypatch: pytest.MonkeyPatch, reply: Callable[[int], bytes]) -> Iterator[list[str]]:
    """A server on loopback that AWS's clients ask; the targets of its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(self.headers.get("X-Amz-Target", self.path))
            body = reply(len(asked))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


class Silence:
    """An endpoint that accepts requests and never answers; each wait advances the clock by its time-out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        watch = patience.watch
        monkeypatch.setattr(patience, "watch", lambda events: watch(events, lambda: self.now))
        monkeypatch.setattr(
            "botocore.httpsession.URLLib3Session.send", lambda session, _: self._send(session)
        )

    def _send(self, session: Any) -> Any:
        self.waits.append(session._timeout.read_timeout)
        self.now += self.waits[-1]
        raise ReadTimeoutError(endpoint_url="https://aws")


def test_a_read_without_an_answer_ends_within_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(monkeypatch)
    with pytest.raises(AWS_ERRORS) as error:
        Account("us-east-2").client("sagemaker").list_clusters()
    assert silence.waits == [20] and explain(error.value).startswith("AWS did not answer in time")


def test_a_connection_that_is_cut_at_once_is_tried_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(monkeypatch)
    monkeypatch.setattr(patience, "SILENCE", 1)
    account = Account("us-east-2")
    client = account.client("sagemaker")
    client._endpoint.http_session._quick._timeout = type("T", (), {"read_timeout": 3})()
    with pytest.raises(ReadTimeoutError):
        client.list_clusters()
    assert silence.waits == [3, 3, 3] and silence.now - 100 < 30


def test_a_call_that_changes_something_waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(monkeypatch)
    client = Account("us-east-2").client("sagemaker")
    with pytest.raises(ReadTimeoutError):
        client.batch_reboot_cluster_nodes(ClusterName="a", NodeIds=["i-00000000000000000"])
    assert silence.waits == [90]


def test_a_call_that_must_not_happen_twice_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(monkeypatch)
    client = Account("us-east-2").client("ec2", once=True)
    client._endpoint.http_session._patient()._timeout = type("T", (), {"read_timeout": 1})()
    with pytest.raises(ReadTimeoutError):
        client.purchase_capacity_block(CapacityBlockOfferingId="cb-1", InstancePlatform="Linux/UNIX")
    assert silence.waits == [1]


@pytest.mark.parametrize("body", [PAGE, b"{}"])
@pytest.mark.parametrize("service", ["sts", "ec2", "sagemaker", "cloudformation"])
def test_answers_that_are_not_of_aws_are_errors_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, service: str, body: bytes
) -> None:
    calls = {
        "sts": lambda client: client.get_caller_identity()["Account"],
        "ec2": lambda client: client.describe_capacity_reservations()["CapacityReservations"],
        "sagemaker": lambda client: client.describe_cluster(ClusterName="a")["ClusterName"],
        "cloudformation": lambda client: client.describe_stacks()["Stacks"],
    }
    with endpoint(monkeypatch, lambda _: body), pytest.raises(ResponseParserError) as error:
        calls[service](Account("us-east-2").client(service))
    assert "something that is not AWS" in explain(error.value)


def test_pages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_PAGES", 3)

    def page(number: int) -> bytes:
        return json.dumps({"ClusterSummaries": [], "NextToken": f"{number}"}).encode()

    with endpoint(monkeypatch, page) as asked, pytest.raises(PaginationError, match="more than 3 pages"):
        list(Account("us-east-2").client("sagemaker").get_paginator("list_clusters").paginate())
    assert len(asked) == 4


def test_a_token_that_comes_twice_ends_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(_: int) -> bytes:
        return b'{"ClusterSummaries": [], "NextToken": "a"}'

    with endpoint(monkeypatch, same) as asked, pytest.raises(PaginationError, match="received twice"):
        list(Account("us-east-2").client("sagemaker").get_paginator("list_clusters").paginate())
    assert len(asked) == 2

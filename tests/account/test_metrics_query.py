"""PromQL over Prometheus' HTTP API: signed, tried again, and every fault one line."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.stub import Stubber
from metrics_workspace import GOOD, KEYS, Workspace, serving, vector

from ultracluster.account import metrics_query
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.metrics_query import MetricsQuery

ARN = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
ROLE = "arn:aws:iam::222233334444:role/reader"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["AKIDEXAMPLE"])
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(metrics_query, "PAUSE_SECONDS", 0.0)


def query(workspace: Workspace, **more: Any) -> MetricsQuery:
    return MetricsQuery(Account(region="us-east-1"), ARN, url=workspace.url, **more)


def test_an_answer_and_what_may_be_missing_in_it() -> None:
    answer = vector(
        ({"node": "n1"}, "2"), ({"node": "n2"}, "NaN"), ({"node": "n\n3"}, "+Inf"), warnings=["partial"]
    )
    with serving(Workspace((200, answer))) as workspace:
        found = query(workspace).ask('up{cluster="a b"} > 1')
    assert workspace.asked == ['up{cluster="a b"} > 1']
    assert [sample.value for sample in found.samples] == [2, float("inf")]
    assert "\n" not in found.samples[1].labels["node"]
    assert found.warnings == ("partial",)


def test_requests_are_signed_for_the_workspaces_own_region() -> None:
    with serving(Workspace()) as workspace:
        query(workspace).ask("up")
        assert "/eu-west-1/aps/aws4_request" in workspace.headers[0]["Authorization"]
        with pytest.MonkeyPatch.context() as patch:  # the other side looks: a wrong secret is refused
            patch.setitem(KEYS, "AKIDEXAMPLE", "another")
            with pytest.raises(AccountError, match=r"403.*aps:QueryMetrics"):
                query(workspace).ask("up")


def test_a_workspace_of_another_account_is_asked_as_a_role_which_is_assumed_once() -> None:
    account = Account(region="us-east-1")
    given = {
        "AccessKeyId": "ASIAEXAMPLE12345", "SecretAccessKey": KEYS["ASIAEXAMPLE"], "SessionToken": "a token",
        "Expiration": "2030-01-01T00:00:00Z",
    }  # fmt: skip
    with (
        serving(Workspace()) as workspace,
        Stubber(account.client("sts")) as sts,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setitem(KEYS, "ASIAEXAMPLE12345", KEYS["ASIAEXAMPLE"])
        sts.add_response(
            "assume_role", {"Credentials": given}, {"RoleArn": ROLE, "RoleSessionName": "ultracluster-doctor"}
        )
        asked = MetricsQuery(account, ARN, role_arn=ROLE, url=workspace.url)
        asked.ask("up")
        asked.ask("down")
        sts.assert_no_pending_responses()
    assert workspace.headers[0]["X-Amz-Security-Token"] == "a token"
    assert "Credential=ASIAEXAMPLE12345/" in workspace.headers[1]["Authorization"]


def test_a_role_that_may_not_be_assumed_is_named() -> None:
    account = Account(region="us-east-1")
    with serving(Workspace()) as workspace, Stubber(account.client("sts")) as sts:
        sts.add_client_error(
            "assume_role", "AccessDenied", "User: x is not authorized to perform: sts:AssumeRole"
        )
        with pytest.raises(AccountError, match=f"{re.escape(ROLE)}.*sts:AssumeRole is not allowed"):
            MetricsQuery(account, ARN, role_arn=ROLE, url=workspace.url).ask("up")
    assert workspace.asked == []


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (403, {"message": "User: arn:x is not authorized to perform: aps:QueryMetrics"}, "aps:QueryMetrics"),
        (404, {"message": "workspace not found"}, "no such workspace"),
        (400, {"status": "error", "errorType": "bad_data", "error": "parse error: x"}, "parse error: x"),
        (
            422,
            {"status": "error", "error": "query processing would load too many samples"},
            "too many samples",
        ),
        (200, {"status": "error", "error": "timed out"}, "timed out"),
        (200, b"<html>log in to the proxy</html>", "no reason"),
        (200, b"", "no reason"),
        (200, [1, 2], "no reason"),
        (200, {"status": "success"}, "not one of Prometheus"),
        (
            200,
            {"status": "success", "data": {"resultType": "vector", "result": [{"metric": 5}]}},
            "not one of",
        ),
        (200, {"status": "success", "data": {"resultType": "vector", "result": 7}}, "not one of Prometheus"),
        (200, b" " * (metrics_query.MOST_BYTES + 1), "too many to read"),
        (500, b"\xff\xfe", "HTTP 500"),
    ],
)
def test_whatever_is_no_answer_is_one_line(status: int, answer: Any, says: str) -> None:
    with serving(Workspace((status, answer))) as workspace, pytest.raises(AccountError, match=says) as raised:
        query(workspace).ask("up")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_asked_again_and_then_given_up(status: int) -> None:
    with serving(Workspace((status, {}), (status, {}), (200, GOOD))) as workspace:
        assert query(workspace).ask("up").samples == ()
        assert len(workspace.asked) == 3
    with serving(Workspace((status, {"message": "Rate exceeded"}))) as workspace:
        with pytest.raises(AccountError, match="Rate exceeded"):
            query(workspace).ask("up")
        assert len(workspace.asked) == metrics_query.ATTEMPTS


def test_a_workspace_that_does_not_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_query, "READ_SECONDS", 0.2)
    with serving(Workspace()) as workspace:
        workspace.wait = 2
        with pytest.raises(AccountError, match="did not answer in time"):
            query(workspace).ask("up")


def test_nobody_there() -> None:
    with pytest.raises(AccountError, match="cannot be reached"):
        MetricsQuery(Account(region="us-east-1"), ARN, url="http://127.0.0.1:9/x").ask("up")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with serving(Workspace()) as workspace, pytest.raises(AccountError, match="no AWS credentials"):
        query(workspace).ask("up")


def test_the_address_of_a_workspace() -> None:
    asked = MetricsQuery(Account(region="us-east-1"), ARN)
    assert asked._url == (
        "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/"
        "ws-12345678-90ab-cdef-1234-567890abcdef/api/v1/query"
    )

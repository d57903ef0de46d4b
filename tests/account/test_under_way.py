"""What a command waits for is known from the first byte of a request to the last of its answer."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.config import Config
from hyperpod_service import account

from ultracluster.account import under_way


class Reply:
    headers: dict[str, str] = {}

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


def test_a_request_is_under_way_until_its_answer_or_refusal() -> None:
    aws_account = account()
    seen: list[str] = []

    def reply(**_: Any) -> tuple[Any, dict[str, Any]]:
        seen.append(under_way.request())
        if len(seen) == 2:
            return Reply(403), {"Error": {"Code": "UnauthorizedOperation"}, "ResponseMetadata": {}}
        return Reply(200), {"Reservations": [], "ResponseMetadata": {}}

    aws_account._session.events.register("before-call", reply)
    ec2 = aws_account.client("ec2")

    assert under_way.request() == ""
    ec2.describe_instances()
    with pytest.raises(Exception, match="UnauthorizedOperation"):
        ec2.describe_instances()
    assert seen == ["ec2 DescribeInstances"] * 2
    assert under_way.request() == ""


def test_a_request_that_breaks_off_ends_too() -> None:
    """No such host: the answer never comes."""
    aws_account = account()
    sts = aws_account._session.client("sts", endpoint_url="http://127.0.0.1:9", config=_no_retries())

    with pytest.raises(Exception, match="Could not connect"):
        sts.get_caller_identity()
    assert under_way.request() == ""


def test_what_has_no_end_is_forgotten() -> None:
    ec2 = account().client("ec2")

    def broken(**_: Any) -> None:
        raise RuntimeError("between beginning and end")

    ec2.meta.events.register("before-call.ec2", broken)
    with pytest.raises(RuntimeError):
        ec2.describe_instances()
    under_way.forget()
    assert under_way.request() == ""


def _no_retries() -> Any:
    return Config(retries={"total_max_attempts": 1}, connect_timeout=1)

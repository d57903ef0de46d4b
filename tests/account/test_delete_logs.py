"""The deletion of a retained log group: what is gone is no error, and a refusal is."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import account, answer, refusal

from ultracluster.account.aws import AccountError
from ultracluster.account.delete_logs import delete_logs

NAME = "/aws/eks/prod/cluster"


@pytest.mark.parametrize("code", ["", "ResourceNotFoundException", "AccessDeniedException"])
def test_it_is_deleted_or_the_refusal_is_told(code: str) -> None:
    asked: list[Any] = []

    def delete(words: dict[str, Any]) -> dict[str, Any]:
        asked.append(words)
        if code:
            raise refusal(code, "why")
        return {}

    aws_account = account()
    answer(aws_account.client("logs"), "DeleteLogGroup", delete)
    if code.startswith("Access"):
        with pytest.raises(AccountError, match=r"why|denied"):
            delete_logs(aws_account, NAME)
    else:
        delete_logs(aws_account, NAME)
    assert asked == [{"logGroupName": NAME}]

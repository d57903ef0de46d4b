"""Documents that nodes pull, in a bucket as S3 answers."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hyperpod_service import account, answer, refusal
from kubernetes_support import environment

from ultracluster.account.aws import AccountError
from ultracluster.account.state_store import ChangedMeanwhileError, Stored, scripts_bucket, store, stored
from ultracluster.model import resolve

OWN = resolve(environment({"storage.scripts_bucket": {"name": "example-scripts"}}, base="dev"))


def test_a_bucket_of_the_file_is_not_looked_up() -> None:
    assert scripts_bucket(account(), OWN) == "example-scripts"


def test_the_document_and_its_etag() -> None:
    aws_account = account()
    asked: list[Any] = []

    def get(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"Body": io.BytesIO(b'{"schema": 1}'), "ETag": '"abc"'}

    answer(aws_account.client("s3"), "GetObject", get)
    found = stored(aws_account, OWN, "teams")
    assert found == Stored(
        bucket="example-scripts", key="dev/state/teams.json", content={"schema": 1}, etag='"abc"'
    )
    assert found.uri == "s3://example-scripts/dev/state/teams.json"
    assert asked == [{"Bucket": "example-scripts", "Key": "dev/state/teams.json"}]


@pytest.mark.parametrize(("etag", "condition"), [('"abc"', {"IfMatch": '"abc"'}), ("", {"IfNoneMatch": "*"})])
def test_only_what_was_read_is_replaced(etag: str, condition: dict[str, str]) -> None:
    aws_account = account()
    asked: list[Any] = []
    answer(aws_account.client("s3"), "PutObject", lambda request: asked.append(request) or {})
    before = Stored(bucket="example-scripts", key="dev/state/users.json", content=None, etag=etag)
    store(aws_account, before, {"b": 1, "a": 2})
    assert {key: value for key, value in asked[0].items() if key.startswith("If")} == condition
    body = asked[0]["Body"]
    assert (body if isinstance(body, bytes) else body.read()) == b'{\n "a": 2,\n "b": 1\n}\n'


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("PreconditionFailed", ChangedMeanwhileError),
        ("ConditionalRequestConflict", ChangedMeanwhileError),
        ("AccessDenied", AccountError),
    ],
)
def test_what_s3_refuses(code: str, error: type[Exception]) -> None:
    aws_account = account()

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal(code)

    answer(aws_account.client("s3"), "PutObject", refuse)
    before = Stored(bucket="example-scripts", key="dev/state/users.json", content=None, etag='"abc"')
    with pytest.raises(error):
        store(aws_account, before, {})

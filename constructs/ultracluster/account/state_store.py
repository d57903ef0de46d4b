"""Documents of a cluster's state, which nodes pull, in the bucket of its scripts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain
from ultracluster.account.stack_outputs import stack_outputs
from ultracluster.model import Cluster
from ultracluster.model.state_documents import document_text, state_key

ABSENT = ("NoSuchKey", "404")
CHANGED = ("PreconditionFailed", "ConditionalRequestConflict")


class ChangedMeanwhileError(AccountError):
    """Somebody else wrote the document after it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A document as it is in the bucket."""

    bucket: str
    key: str
    content: dict[str, Any] | None
    """None where there is none yet, or none that can be read as one."""
    etag: str = ""
    """Empty where there is none."""

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def scripts_bucket(account: Account, cluster: Cluster) -> str:
    """Name of the bucket of the scripts.

    Raises:
        AccountError: it is not deployed, or AWS could not be asked.
    """
    environment = cluster.environment
    if given := environment.storage.scripts_bucket:
        return given.name
    stack = environment.stack_name("buckets")
    name = stack_outputs(account, [stack]).get(stack, {}).get("ScriptsBucketName")
    if not name:
        raise AccountError(f"{stack} is not deployed: a deploy makes the bucket and the first document")
    return name


def stored(account: Account, cluster: Cluster, document: str) -> Stored:
    """The document that nodes pull now.

    Raises:
        AccountError: AWS could not be asked.
    """
    s3 = account.client("s3")
    bucket, key = scripts_bucket(account, cluster), state_key(cluster, document)
    try:
        answer: dict[str, Any] = s3.get_object(Bucket=bucket, Key=key)
        text: bytes = answer["Body"].read()
    except AWS_ERRORS as error:
        if code(error) in ABSENT:
            return Stored(bucket=bucket, key=key, content=None)
        raise AccountError(explain(error)) from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    found = cast("dict[str, Any]", content) if isinstance(content, dict) else None
    return Stored(bucket=bucket, key=key, content=found, etag=str(answer["ETag"]))


def store(account: Account, before: Stored, document: dict[str, Any]) -> None:
    """Write a document in the place of the one that was read, if that is still the one.

    Raises:
        ChangedMeanwhileError: it is another one by now.
        AccountError: AWS could not be asked.
    """
    s3 = account.client("s3")
    condition = {"IfMatch": before.etag} if before.etag else {"IfNoneMatch": "*"}
    try:
        s3.put_object(
            Bucket=before.bucket,
            Key=before.key,
            Body=document_text(document),
            ContentType="application/json",
            **condition,
        )
    except AWS_ERRORS as error:
        if code(error) in CHANGED:
            raise ChangedMeanwhileError(
                f"{before.uri} was written by somebody else meanwhile: look at it again"
            ) from None
        raise AccountError(explain(error)) from None

"""The bucket of the scripts, as commands that write documents of the cluster's state meet it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

from hyperpod_service import account, answer, refusal


class Bucket:
    """S3 as it answers: an object with its ETag, and conditional writes."""

    def __init__(
        self,
        name: str = "dev",
        *,
        deployed: bool = True,
        region: str = "us-west-2",
        number: str = "111122223333",
    ) -> None:
        self.name = f"{name}-buckets-scripts-1"
        self.account = account(region, number)
        self.objects: dict[str, bytes] = {}
        self.writes: list[dict[str, Any]] = []
        self.refused: Exception | None = None
        self.before_write: Callable[[], None] = lambda: None
        s3, stacks = self.account.client("s3"), self.account.client("cloudformation")
        answer(s3, "GetObject", self._get)
        answer(s3, "PutObject", self._put)
        output = {"OutputKey": "ScriptsBucketName", "OutputValue": self.name}
        outputs = [output] if deployed else []
        stack = {"StackName": f"{name}-buckets", "StackStatus": "CREATE_COMPLETE", "CreationTime": 0}
        answer(stacks, "DescribeStacks", lambda _: {"Stacks": [{**stack, "Outputs": outputs}]})

    def _get(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["Bucket"] == self.name
        if self.refused:
            raise self.refused
        if asked["Key"] not in self.objects:
            raise refusal("NoSuchKey")
        content = self.objects[asked["Key"]]
        return {"Body": io.BytesIO(content), "ETag": _etag(content)}

    def _put(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.before_write()
        key, body = asked["Key"], asked["Body"]
        content = body if isinstance(body, bytes) else body.read()
        there = self.objects.get(key)
        wrong = asked["IfMatch"] != _etag(there or b"") if "IfMatch" in asked else there is not None
        if wrong:
            raise refusal("PreconditionFailed")
        self.objects[key] = content
        self.writes.append(asked)
        return {"ETag": _etag(content)}

    @property
    def document(self) -> dict[str, Any]:
        (text,) = self.objects.values()
        return json.loads(text)


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'

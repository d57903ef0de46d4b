"""Policies of buckets. Unverified: error codes are still to be checked."""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket

from emulated_account import api_model
from emulated_account.adapter import Adapter
from emulated_account.refusal import ApiError


class BucketPolicy(Adapter):
    resource_type = "AWS::S3::BucketPolicy"
    judged_by = "s3:PutBucketPolicy"

    def create(self) -> None:
        self.update(self.properties)
        self.physical_resource_id = self.properties["Bucket"]

    def update(self, properties: dict[str, Any]) -> None:
        bucket, document = properties["Bucket"], properties["PolicyDocument"]
        document = json.loads(document) if isinstance(document, str) else document
        for statement in _list(document.get("Statement", [])):
            _judge(statement, bucket)
        request = api_model.judge("s3", "PutBucketPolicy", {"Bucket": bucket, "Policy": json.dumps(document)})
        self.place.client("s3").put_bucket_policy(**request)

    def remove(self) -> None:
        self.place.client("s3").delete_bucket_policy(Bucket=self.properties["Bucket"])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _judge(statement: dict[str, Any], bucket: str) -> None:
    if "Principal" not in statement and "NotPrincipal" not in statement:
        raise ApiError("MalformedPolicy", "Missing required field Principal")
    if statement.get("Effect") not in ("Allow", "Deny"):
        raise ApiError("MalformedPolicy", f"Invalid effect: {statement.get('Effect')}")
    arns = _list(statement.get("Resource", statement.get("NotResource", [])))
    if not arns:
        raise ApiError("MalformedPolicy", "Missing required field Resource")
    if not all(arn == "*" or arn.partition(":::")[2].partition("/")[0] == bucket for arn in arns):
        raise ApiError("MalformedPolicy", "Policy has invalid resource")


def permission(bucket: FakeBucket, action: str, resource: str) -> PermissionResult:
    """A bucket's policy without statements that have conditions: moto applies those to everybody."""
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy.decode())
    plain = [one for one in _list(document["Statement"]) if "Condition" not in one]
    if not plain:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps(document | {"Statement": plain})).is_action_permitted(action, resource)

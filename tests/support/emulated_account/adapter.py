"""A resource type that moto's CloudFormation does not know: its life as CloudFormation sees it."""

from __future__ import annotations

import functools
import os
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

import boto3

from emulated_account import schemas

# Moto reads the same variable.
ACCOUNT = os.environ.get("MOTO_ACCOUNT_ID", "123456789012")


@dataclass(frozen=True)
class Place:
    """Where a resource is: account, region, stack and logical id."""

    account: str
    region: str
    stack: str
    logical_id: str

    def generated_name(self, length: int) -> str:
        """A name as CloudFormation makes it: stack, logical id and twelve random characters."""
        tail = f"-{uuid.uuid4().hex[:12]}"
        return f"{self.stack.split('/')[1]}-{self.logical_id}"[: length - len(tail)] + tail

    def client(self, service: str) -> Any:
        """A client of this account's own endpoint, so that an adapter sees what everybody sees."""
        return client(service, self.region)


@functools.cache
def client(service: str, region: str) -> Any:
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106
    )


class Adapter:
    """One resource. A subclass creates, updates and deletes; a ApiError or an API error fails the stack.

    It has the interface of moto's CloudFormationModel where moto's engine asks for it.
    """

    resource_type: ClassVar[str]
    # The operation of botocore's models that the subclass judges a resource by.
    judged_by: ClassVar[str] = ""

    def __init__(self, place: Place, properties: dict[str, Any]) -> None:
        self.place = place
        self.properties = properties
        self.physical_resource_id = ""
        self.attributes: dict[str, Any] = {}
        self.cf_resource_type = self.resource_type
        self.logical_resource_id = place.logical_id

    def create(self) -> None:
        raise NotImplementedError

    def update(self, properties: dict[str, Any]) -> None:
        raise NotImplementedError(f"{self.resource_type} is not updated by this account")

    def remove(self) -> None:
        raise NotImplementedError

    def is_created(self) -> bool:
        return True

    def delete(self, _account: str, _region: str) -> None:
        self.remove()

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return attr in schemas.attributes("us-west-2", cls.resource_type)

    def get_cfn_attribute(self, name: str) -> Any:
        """An attribute that the schema lists as read-only, or a property of that name."""
        if name in self.attributes:
            return self.attributes[name]
        known = schemas.schema(self.place.region, self.resource_type)["properties"]
        if name in known and name in self.properties:
            return self.properties[name]
        raise KeyError(f"{self.resource_type} has no attribute {name}")

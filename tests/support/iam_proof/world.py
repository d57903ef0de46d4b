"""One environment as IAM sees it: who there is with which policies, and which policies its resources have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from iam_proof.resolved import Resolved
from ultracluster.config import Environment

STRANGER = "999999999999"
"""An account that nobody here knows."""
OF_AWS = "777777777777"
"""Stands for the accounts of AWS itself, which has many."""
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
OPEN_TO_ALL = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}],
}
DEFAULT_KEY = "a key's default policy"
"""Of keys of the account that are in no template (KMS Developer Guide, "Default key policy")."""
FULL_ACCESS = "AWS's default"
"""The policy of an endpoint that has none of its own (PrivateLink User Guide, "Default endpoint policy")."""
POLICIES = ("AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
WITH_POLICIES = {
    "AWS::S3::BucketPolicy": ("Bucket", "PolicyDocument"),
    "AWS::SecretsManager::ResourcePolicy": ("SecretId", "ResourcePolicy"),
    "AWS::SNS::TopicPolicy": ("Topics", "PolicyDocument"),
    "AWS::SQS::QueuePolicy": ("Queues", "PolicyDocument"),
}
"""Resources that are a policy of others: property with these, property with the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Someone who calls."""

    label: str
    arn: str | None
    """Of the session, or the name of a service; None for an unsigned call."""
    role: str | None = None
    account: str | None = None
    identity: tuple[str, ...] = ()
    """Names of its identity policies."""
    boundary: tuple[str, ...] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    at: str = "vpc"
    """Where its calls come from: `vpc`, `aws` (an AWS service's own network) or `internet`."""
    own: Mapping[str, list[str]] = field(default_factory=dict)
    """Names (names.py) that only this caller has a value for."""


class World:
    """An environment's principals, endpoints and policies.

    Attributes:
        name: of the environment; unique among those that are asked about together.
        config: what its templates were made from.
        resolved: its templates.
        policies: documents by name, all that there are.
        by_resource: name of the policy by the ARN of the resource that has it.
        endpoints: (endpoint, VPC, name of its policy) by service.
    """

    def __init__(self, name: str, config: Environment, resolved: Resolved) -> None:
        self.name = name
        self.config = config
        self.resolved = resolved
        self.region = resolved.region
        self.account = resolved.account
        self.policies: dict[str, Mapping[str, Any]] = {
            "everything": EVERYTHING,
            "open to all": OPEN_TO_ALL,
            FULL_ACCESS: OPEN_TO_ALL,
            DEFAULT_KEY: {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"AWS": f"arn:aws:iam::{resolved.account}:root"},
                        "Action": "kms:*",
                        "Resource": "*",
                    }
                ],
            },
        }
        self._attached = self._attach()
        self.by_resource = dict(self._resource_policies())
        self.endpoints = dict(self._endpoints())

    @cached_property
    def roles(self) -> dict[str, Principal]:
        """A session of every role of the templates, by the role's ARN."""
        found: dict[str, Principal] = {}
        for stack, logical, _ in self.resolved.resources("AWS::IAM::Role"):
            arn = self.resolved.attribute(stack, logical, "Arn")
            mine = self.resolved.properties(stack, logical)
            boundary = mine.get("PermissionsBoundary")
            found[arn] = session_of(
                arn,
                logical,
                identity=tuple(self._attached.get(arn.rpartition("/")[2], ())),
                boundary=(boundary,) if boundary else None,
                tags={tag["Key"]: tag["Value"] for tag in mine.get("Tags", [])},
            )
        return found

    def of_role(self, arn: str, label: str, at: str = "vpc") -> Principal:
        return replace(self.roles[arn], label=label, at=at)

    def each(self, *kinds: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """(logical id, resolved properties) of the resources of some types."""
        for stack, logical, _ in self.resolved.resources(*kinds):
            yield logical, self.resolved.properties(stack, logical)

    @cached_property
    def buckets(self) -> dict[str, Mapping[str, Any]]:
        """Properties by ARN of the buckets that the environment makes."""
        return {
            self.resolved.attribute(stack, logical, "Arn"): self.resolved.properties(stack, logical)
            for stack, logical, _ in self.resolved.resources("AWS::S3::Bucket")
        }

    def key_of_bucket(self, bucket: str) -> str | None:
        """ARN of the KMS key with which a bucket encrypts what it is given."""
        told = self.buckets.get(bucket, {}).get("BucketEncryption", {})
        for rule in told.get("ServerSideEncryptionConfiguration", []):
            if key := rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID"):
                return key
        return None

    def tags_of_key(self, key: str) -> dict[str, str]:
        """`aws:ResourceTag/...` of a key that the environment makes."""
        return {
            f"aws:ResourceTag/{tag['Key']}": tag["Value"]
            for stack, logical, _ in self.resolved.resources("AWS::KMS::Key")
            if self.resolved.attribute(stack, logical, "Arn") == key
            for tag in self.resolved.properties(stack, logical).get("Tags", [])
        }

    def key_of_secret(self, secret: str) -> str | None:
        """ARN of the KMS key that encrypts a secret of the environment; None for AWS's own."""
        for stack, logical, _ in self.resolved.resources("AWS::SecretsManager::Secret"):
            if self.resolved.ref(stack, logical) == secret:
                return self.resolved.properties(stack, logical).get("KmsKeyId")
        return None

    @property
    def closed(self) -> bool:
        return self.config.network.egress == "closed"

    def _attach(self) -> dict[str, list[str]]:
        """Names of policies by the name of the role; the documents go into `policies`."""
        names: dict[str, list[str]] = {}
        for stack, logical, resource in self.resolved.resources(*POLICIES):
            mine = self.resolved.properties(stack, logical)
            ref = self.resolved.ref(stack, logical)
            own = f"{self.name}: {stack}/{logical}"
            match resource["Type"]:
                case "AWS::IAM::Role":
                    assert not mine.get("ManagedPolicyArns"), f"{own} has policies that are in no template"
                    inline = mine.get("Policies", [])
                    documents = {f"{own}/{one['PolicyName']}": one["PolicyDocument"] for one in inline}
                    roles = [ref]
                case "AWS::IAM::ManagedPolicy":
                    documents, roles = {ref: mine["PolicyDocument"]}, mine.get("Roles", [])
                case _:
                    documents, roles = {own: mine["PolicyDocument"]}, mine["Roles"]
            self.policies |= documents
            for role in roles:
                names.setdefault(role, []).extend(documents)
        return names

    def _resource_policies(self) -> Iterator[tuple[str, str]]:
        kinds = (*WITH_POLICIES, "AWS::KMS::Key", "AWS::IAM::Role")
        for stack, logical, resource in self.resolved.resources(*kinds):
            mine = self.resolved.properties(stack, logical)
            name = f"{self.name}: {stack}/{logical} as a resource"
            if resource["Type"] not in WITH_POLICIES:
                document = mine.get("KeyPolicy") or mine["AssumeRolePolicyDocument"]
                # a trust whose conditions have names that CloudFormation fills in is a text
                self.policies[name] = json.loads(document) if isinstance(document, str) else document
                yield self.resolved.attribute(stack, logical, "Arn"), name
                continue
            where, what = WITH_POLICIES[resource["Type"]]
            self.policies[name] = mine[what]
            for one in mine[where] if isinstance(mine[where], list) else [mine[where]]:
                yield f"arn:aws:s3:::{one}" if where == "Bucket" else one, name

    def _endpoints(self) -> Iterator[tuple[str, tuple[str, str, str]]]:
        for stack, logical, _ in self.resolved.resources("AWS::EC2::VPCEndpoint"):
            mine = self.resolved.properties(stack, logical)
            service = re.sub(rf"^(com\.amazonaws|aws\.api)\.{self.region}\.", "", mine["ServiceName"])
            name = FULL_ACCESS
            if document := mine.get("PolicyDocument"):
                name = f"{self.name}: endpoint of {service}"
                self.policies[name] = json.loads(document) if isinstance(document, str) else document
            yield service, (self.resolved.ref(stack, logical), mine["VpcId"], name)


def session_of(role: str, label: str, **more: Any) -> Principal:
    """Someone who has taken a role.

    Args:
        role: ARN.
        label: who it is, in words.
        more: further fields.
    """
    account, name = role.split(":")[4], role.rpartition("/")[2]
    session = f"arn:aws:sts::{account}:assumed-role/{name}/session"
    return Principal(label=label, arn=session, role=role, account=account, **more)

"""What users' jobs on Slurm nodes may do in S3, in place of the rights of their node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.storage import JobBucket
from ultracluster.security.acknowledgements import acknowledge, wildcard

ASSUME = ("sts:AssumeRole", "sts:SetSourceIdentity")
"""With the user's name as source identity, which CloudTrail shows beside every call of the session."""
_READ = ["s3:GetObject"]
_MOUNT_WRITE = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"]
_WRITE = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:ListMultipartUploadParts", "s3:PutObject"]


class JobRole(Construct):
    """The role whose credentials nodes hand to their users (lifecycle step `job_access`), for an hour each.

    Only roles of nodes assume it, and only in the name of a user.

    Attributes:
        role: the IAM role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        buckets: Sequence[JobBucket],
        nodes: Sequence[str],
        never: Sequence[str] = (),
    ) -> None:
        """Make the role.

        Args:
            cluster_name: the cluster whose jobs have it, for the description.
            buckets: what it may reach; at least one.
            nodes: ARNs of the nodes' roles that may assume it, with `*` where a part is not known; at least
                one. What lets them do so on their side is `grant_assume` or `assume_statement`.
            never: ARNs, or patterns of them, among `nodes` that may not.

        Raises:
            ValueError: no bucket or no node is given.
        """
        super().__init__(scope, construct_id)
        if not buckets or not nodes:
            raise ValueError(f"{self.node.path}: a role for jobs requires a bucket and a role of nodes")
        self._nodes, trusted = list(nodes), _trusted(nodes, never)
        account = cast("iam.IPrincipal", iam.AccountRootPrincipal())
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=cast("iam.IPrincipal", iam.PrincipalWithConditions(account, trusted)),
            description=f"Jobs of users of the cluster {cluster_name}",
        )
        self._trust(["sts:SetSourceIdentity"], trusted)
        allow_buckets(self.role, buckets)

    def grant_assume(self, node_role: iam.IRole) -> None:
        """Let nodes with this role hand out credentials; it may be another one than those it was made for."""
        if node_role.role_arn not in self._nodes:
            self._trust(ASSUME, _trusted([node_role.role_arn], ()))
        node_role.add_to_principal_policy(self.assume_statement())

    def assume_statement(self) -> iam.PolicyStatement:
        """What the nodes' own policy says of it."""
        return iam.PolicyStatement(sid="AssumeJobRole", actions=list(ASSUME), resources=[self.role.role_arn])

    def _trust(self, actions: Sequence[str], conditions: dict[str, object]) -> None:
        document = self.role.assume_role_policy
        assert document  # a role that is made here has one
        document.add_statements(
            iam.PolicyStatement(
                actions=list(actions),
                principals=[cast("iam.IPrincipal", iam.AccountRootPrincipal())],
                conditions=conditions,
            )
        )


def allow_buckets(role: iam.Role, buckets: Sequence[JobBucket], *, mounts: bool = False) -> None:
    """Allow what is asked for of each, in statements of their own.

    Args:
        mounts: for Mountpoint, which neither asks for a bucket's Region nor lists parts of uploads.
    """
    accepted: dict[str, str] = {}
    for number, bucket in enumerate(buckets, start=1):
        files = _reach(role, bucket, str(number) if len(buckets) > 1 else "", mounts=mounts)
        accepted[wildcard(role, files)] = (
            "What mountpoint_s3 and model_buckets name, as files of S3 have no ARN yet."
            if mounts
            else "What storage.job_buckets names, as files of S3 have no ARN yet."
        )
    acknowledge(role, accepted)


def _reach(role: iam.Role, asked: JobBucket, number: str, *, mounts: bool) -> str:
    """Adds the statements of one bucket; returns the ARN of its files."""
    stack = Stack.of(role)
    bucket = f"arn:{stack.partition}:s3:::{asked.bucket}"
    prefix = (asked.prefix or "").rstrip("/")
    files = f"{bucket}/{prefix}/*" if prefix else f"{bucket}/*"
    within = {"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}} if prefix else None
    _allow(role, f"ListBucket{number}", ["s3:ListBucket"], [bucket], within)
    if not mounts:
        _allow(role, f"FindBucket{number}", ["s3:GetBucketLocation"], [bucket])
    _allow(role, f"ReadFiles{number}", _READ, [files])
    if asked.write:
        _allow(role, f"WriteFiles{number}", _MOUNT_WRITE if mounts else _WRITE, [files])
    if asked.key:
        through = {"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}}
        actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if asked.write else [])]
        _allow(role, f"UseKey{number}", actions, [asked.key.arn], through)
    return files


def _allow(
    role: iam.Role, sid: str, actions: list[str], resources: list[str], conditions: object | None = None
) -> None:
    role.add_to_policy(
        iam.PolicyStatement(
            sid=sid,
            actions=actions,
            resources=resources,
            conditions=cast("dict[str, object] | None", conditions),
        )
    )


def _trusted(nodes: Sequence[str], never: Sequence[str]) -> dict[str, object]:
    """Sessions of these roles that say for whom."""
    conditions: dict[str, object] = {
        "ArnLike": {"aws:PrincipalArn": list(nodes)},
        "StringLike": {"sts:SourceIdentity": "?*"},
    }
    return conditions | ({"ArnNotLike": {"aws:PrincipalArn": list(never)}} if never else {})

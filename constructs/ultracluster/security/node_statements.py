"""Statements that the roles of all kinds of nodes have."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.config.base import s3_place
from ultracluster.config.nodes import Role
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import trusted
from ultracluster.security.role_statements import RoleStatements

EVERY_NODE: tuple[Role, ...] = ("controller", "login", "compute")
"""Roles of nodes of a Slurm cluster: one IAM role can be that of all of them."""

SESSION_CHANNELS = [
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
]
"""What the agent needs for Session Manager (Systems Manager User Guide, "Add Session Manager permissions to
an existing IAM role")."""
MIRROR_IS_READ = "The files of mirrored releases, read-only."
"""Why the wildcard of `read_below` is accepted for a mirror."""


def read_directory_password(
    scope: Construct, secret_arn: str, key_arn: str | None
) -> list[iam.PolicyStatement]:
    """Statements that let a node read one secret, the password with which it asks a directory of users.

    Args:
        key_arn: of the secret, where it is not the account's own.
    """
    statements = [
        iam.PolicyStatement(
            sid="ReadDirectoryPassword", actions=["secretsmanager:GetSecretValue"], resources=[secret_arn]
        )
    ]
    if key_arn:
        region = secret_arn.split(":")[3]
        service = f"secretsmanager.{region}.{Stack.of(scope).url_suffix}"
        statements.append(
            iam.PolicyStatement(
                sid="DecryptDirectoryPassword",
                actions=["kms:Decrypt"],
                resources=[key_arn],
                conditions={"StringEquals": {"kms:ViaService": service}},
            )
        )
    return statements


class NodeRights(Construct):
    """Base of the roles of nodes, whichever service the nodes belong to.

    Attributes:
        role: the IAM role, made here or given.
    """

    role: iam.IRole
    _policy: RoleStatements

    @property
    def grant_principal(self) -> iam.IPrincipal:
        return self.role

    def grant_read_mirror(self, uri: str) -> None:
        """Let nodes read a mirrored software release below an `s3://bucket/prefix`.

        The bucket is made elsewhere; if a KMS key of its own encrypts it, its policy must admit the role.
        """
        statements, files = read_below(self, uri, "Mirror")
        self._policy.add(statements)
        acknowledge(self, {wildcard(self, files): MIRROR_IS_READ})

    def grant_read_directory_password(self, secret_arn: str, key_arn: str | None = None) -> None:
        """Let nodes read the password with which they ask a directory of users, and no other secret."""
        self._policy.add(read_directory_password(self, secret_arn, key_arn))

    def depend_on_policy(self, resource: IConstruct) -> None:
        """Let `resource` wait for the policy: a node that is there earlier may do nothing."""
        resource.node.add_dependency(*self._policy.dependables)

    def _take_role(
        self, role: iam.IRole | None, service: str, description: str, path: str | None = None
    ) -> None:
        """Take the given role, or make one that `service` assumes."""
        self.role = role or cast(
            "iam.IRole",  # the CDK's class and interface differ in names of arguments
            iam.Role(self, "Resource", assumed_by=trusted(self, service), path=path, description=description),
        )
        self._policy = RoleStatements(self.role)


def named(nodes: Collection[Role]) -> str:
    """For descriptions of roles: `Nodes`, or `Login nodes`."""
    return (
        f"{next(iter(nodes)).capitalize()} nodes" if len(nodes) == 1 and "compute" not in nodes else "Nodes"
    )


def read_below(scope: Construct, uri: str, what: str) -> tuple[list[iam.PolicyStatement], str]:
    """Statements that let a role list a bucket and read what lies below an `s3://bucket/prefix`.

    Args:
        what: end of their ids: `Mirror` for `ListMirror` and `ReadMirror`.

    Returns:
        The statements, and the ARN of the files: a wildcard to be acknowledged.
    """
    bucket, prefix = s3_place(uri)
    arn = f"arn:{Stack.of(scope).partition}:s3:::{bucket}"
    files = f"{arn}/{prefix}/*" if prefix else f"{arn}/*"
    statements = [
        iam.PolicyStatement(sid=f"List{what}", actions=["s3:ListBucket"], resources=[arn]),
        iam.PolicyStatement(sid=f"Read{what}", actions=["s3:GetObject"], resources=[files]),
    ]
    return statements, files

"""Which IAM role nodes of which role have: one for each by default, or what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.model import Cluster

GivenRoles = iam.IRole | Mapping[Role, iam.IRole] | None
"""One for all nodes, or by role of node; who is left out gets one that is made."""
_COMPUTE = "Role"
"""Id of the construct with the compute nodes' role; it was that of all nodes once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleShare:
    """Roles of nodes that have one IAM role."""

    construct_id: str
    nodes: tuple[Role, ...]
    given: iam.IRole | None


def role_shares(
    scope: Construct, cluster: Cluster, given_roles: GivenRoles, *, one_for_all: bool = False
) -> list[RoleShare]:
    """One share for each role of node that the cluster's groups have; one for all that are given the same.

    Args:
        one_for_all: one is made for all nodes, where none is given.

    Raises:
        ValueError: a role is given for nodes that the cluster does not have.
    """
    present = _roles_of(cluster)
    if given_roles is None and one_for_all:
        return [RoleShare(construct_id=_COMPUTE, nodes=present, given=None)]
    if given_roles is not None and not isinstance(given_roles, Mapping):
        return [RoleShare(construct_id=_COMPUTE, nodes=present, given=given_roles)]
    given_roles = given_roles or {}
    if unknown := [name for name in given_roles if name not in present]:
        raise ValueError(
            f"{type(scope).__name__}: role= names {', '.join(unknown)}, and the roles of its node groups are "
            f"{', '.join(present)}"
        )
    shares: list[RoleShare] = []
    for role in present:
        own = given_roles.get(role)
        if own is None:
            shares.append(RoleShare(construct_id=_construct_id([role]), nodes=(role,), given=None))
        elif not any(own is share.given for share in shares):
            alike: tuple[Role, ...] = tuple(name for name in present if given_roles.get(name) is own)
            shares.append(RoleShare(construct_id=_construct_id(alike), nodes=alike, given=own))
    return shares


def _roles_of(cluster: Cluster) -> tuple[Role, ...]:
    roles = {group.role for group in cluster.groups.values()}
    order: tuple[Role, ...] = ("compute", "controller", "login", "system")
    return tuple(role for role in order if role in roles)


def _construct_id(nodes: Sequence[Role]) -> str:
    return _COMPUTE if "compute" in nodes else f"{nodes[0].capitalize()}Role"

"""What a launch template may hold, by who launches from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import Annotations, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.model.capacity import Capacity, PlacementKind, decide
from ultracluster.model.network_cards import EfaKind, takes_combined_efa

USER_DATA_BYTES = 16 * 1024
"""EC2 User Guide, "Run commands when you launch an EC2 instance": 16 KB before it is base64-encoded."""

LaunchedBy = Literal["pcs", "eks", "ec2"]
"""ParallelCluster writes templates of its own, HyperPod takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    own_fields: bool = False
    """Subnet and instance profile are given outside the template."""
    mime: bool = False
    """User data is a MIME multi-part document."""
    combined_efa: bool = False
    """EFA interfaces carry IP, too, where the type takes it: its guide shows no other."""


_LAUNCHES: Mapping[LaunchedBy, _Launch] = {
    "pcs": _Launch(own_fields=True, mime=True, combined_efa=True),
    "eks": _Launch(own_fields=True),
    "ec2": _Launch(),
}


def default_efa(orchestrator: LaunchedBy, instance_type: InstanceType) -> EfaKind:
    """The kind of EFA interfaces where none is asked for."""
    return "efa" if _LAUNCHES[orchestrator].combined_efa and takes_combined_efa(instance_type) else "efa-only"


def check_capacity(
    scope: Construct,
    capacity: Capacity,
    orchestrator: LaunchedBy,
    group: ec2.IPlacementGroup | None,
    reserved_in_group: bool,
    instance_type: InstanceType,
) -> None:
    if reserved_in_group and not group:
        raise ValueError("reserved_in_group without placement_group: name the group of the reservation")
    kind: PlacementKind = "none" if not group else "reservation-group" if reserved_in_group else "cluster"
    decision = decide(capacity, orchestrator=orchestrator, placement=kind, instance_type=instance_type)
    if decision.severity == "error":
        raise ValueError(decision.message)
    if decision.severity == "warning":
        Annotations.of(scope).add_warning_v2(f"ultracluster:capacity:{decision.id}", decision.message)


def check_groups(groups: Sequence[ec2.ISecurityGroup]) -> None:
    if not groups:
        raise ValueError(
            "security_groups must hold at least one group: without one EC2 puts the VPC's default group on "
            "the EFA interfaces (primary_security_groups are only on the primary interface)"
        )


def check_own_fields(orchestrator: LaunchedBy, fields: Mapping[str, object | None]) -> None:
    if not _LAUNCHES[orchestrator].own_fields:
        return
    for name, value in fields.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be in a launch template for {orchestrator}, which has its own field for it"
            )


def check_user_data(user_data: str | None, orchestrator: LaunchedBy) -> None:
    if user_data is None or Token.is_unresolved(user_data):
        return
    size = len(user_data.encode())
    if size > USER_DATA_BYTES:
        raise ValueError(
            f"user_data must be at most {USER_DATA_BYTES} bytes, got {size}; fetch the rest from S3"
        )
    if _LAUNCHES[orchestrator].mime and "multipart/mixed" not in user_data:
        raise ValueError(
            "user_data must be a MIME multi-part document for PCS (AWS PCS User Guide, Working with Amazon "
            "EC2 user data), or a script in the node lifecycle actions of the compute node group"
        )

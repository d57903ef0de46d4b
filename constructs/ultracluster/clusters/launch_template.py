"""The launch template of a node group (EC2 User Guide, "Store instance launch parameters").

Built on the L1, because the L2 has no network interfaces, reservation or market options (aws/aws-cdk#30891,
aws/aws-cdk#7928, aws/aws-cdk#14494) and rejects hyphenated families. Every part is a property class: a
dictionary with snake-case keys synthesises to `{}` without an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import Annotations, CfnTag, Fn, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.config.capacity import OnDemand
from ultracluster.model.capacity import Capacity, PlacementKind, decide, market_options
from ultracluster.model.network_cards import (
    EfaKind,
    NetworkInterface,
    network_card_plan,
    takes_combined_efa,
)
from ultracluster.model.root_volume import INCLUDED_MBPS, root_iops

USER_DATA_BYTES = 16 * 1024
"""EC2 User Guide, "Run commands when you launch an EC2 instance": 16 KB before it is base64-encoded."""

LaunchedBy = Literal["pcs", "eks", "ec2"]  # ParallelCluster writes its own, HyperPod takes none
_DATA = ec2.CfnLaunchTemplate


class NodeLaunchTemplate(Construct):
    """How the nodes of one group are launched: type, network cards, capacity, placement, root volume.

    IMDSv2 is required; the root volume is gp3 and encrypted with the key; there is no public address and no
    key pair. Local NVMe disks are left to the node scripts. Whoever launches from it must be allowed to use
    the key: for EKS, PCS and Auto Scaling that is a service-linked role which the key's policy has to name.

    Attributes:
        launch_template_id: `lt-...`.
        latest_version_number: number of the newest version, as a token; changes whenever the template does.
        interfaces: the network interfaces of each node, the primary one first.
        resource: the `AWS::EC2::LaunchTemplate`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: InstanceType,
        security_groups: Sequence[ec2.ISecurityGroup],
        key: kms.IKey,
        root_device: str,
        capacity: Capacity | None = None,
        orchestrator: LaunchedBy = "ec2",
        placement_group: ec2.IPlacementGroup | None = None,
        reserved_in_group: bool = False,
        efa: EfaKind | None = None,
        efa_interfaces: int | None = None,
        primary_security_groups: Sequence[ec2.ISecurityGroup] = (),
        subnet: ec2.ISubnet | None = None,
        image_id: str | None = None,
        instance_profile: iam.IInstanceProfile | None = None,
        root_volume_gib: int = 200,
        root_throughput_mbps: int = INCLUDED_MBPS,
        threads_per_core: Literal[1, 2] | None = None,
        detailed_monitoring: bool = True,
        metadata_hop_limit: int = 1,
        user_data: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make the launch template.

        Args:
            instance_type: from the catalogue (`ultracluster.catalog.instance_type`).
            security_groups: on every interface. Each needs the self rules of EFA (`EfaSecurityGroup` has
                them).
            key: encrypts the root volume.
            root_device: name of the image's root device, `/dev/xvda` on Amazon Linux 2023 and `/dev/sda1` on
                Ubuntu. Another name adds a second volume and leaves the root as the image has it.
            capacity: where the instances come from; on demand by default.
            orchestrator: who launches from it; "ec2" is an Auto Scaling group, a fleet or `run-instances`.
                EKS and PCS ask for Spot in a field of their own, so it is not in the template.
            placement_group: `placement_for` says whether there should be one.
            reserved_in_group: `placement_group` is the group in which the reservation was made.
            efa: kind of the EFA interfaces. By default `efa` on PCS, whose guide shows no other, where the
                type takes it; else `efa-only`, which needs one IP address per node.
            efa_interfaces: how many EFAs; by default all (see `network_card_plan`).
            primary_security_groups: on the primary interface alone, e.g. what admits to a file system.
            subnet: written into each interface. Not with EKS and PCS, which have a subnet of their own: EKS
                refuses it with more than one interface (aws-samples/aws-efa-eks#19).
            image_id: AMI; by default the orchestrator's own.
            instance_profile: role of the nodes. Not with EKS and PCS, which have a field of their own for it.
            root_volume_gib: size of the root volume in GiB, at least that of the image.
            root_throughput_mbps: throughput of the root volume in MiB/s; 125 cost nothing.
            threads_per_core: 1 turns simultaneous multithreading off; by default as the type has it.
            detailed_monitoring: CloudWatch metrics each minute instead of each five.
            metadata_hop_limit: 1 keeps containers in networks of their own away from the node's credentials.
            user_data: as text, at most 16 KiB; for PCS a MIME multi-part document. Not base64.
            tags: of each instance, its volumes and interfaces, beside `Name`. The CDK's own `Tags` do not get
                there.

        Raises:
            ValueError: AWS would refuse the combination, or would not find the capacity; the text says what
                to do. What rests on the catalogue alone is a warning of the CDK instead.
        """
        super().__init__(scope, construct_id)
        capacity = capacity or OnDemand()
        _check_capacity(self, capacity, orchestrator, placement_group, reserved_in_group, instance_type)
        _check_groups(security_groups)
        _check_own_fields(orchestrator, {"subnet": subnet, "instance_profile": instance_profile})
        _check_user_data(user_data, orchestrator)
        self.interfaces = network_card_plan(
            instance_type,
            efa=efa or _efa_of(orchestrator, instance_type),
            interfaces=efa_interfaces,
        )
        market = market_options(capacity, orchestrator=orchestrator)
        self.resource = ec2.CfnLaunchTemplate(
            self,
            "Resource",
            launch_template_data=_DATA.LaunchTemplateDataProperty(
                instance_type=instance_type.name,
                image_id=image_id,
                iam_instance_profile=_DATA.IamInstanceProfileProperty(
                    arn=instance_profile.instance_profile_arn
                )
                if instance_profile
                else None,
                network_interfaces=_interfaces(
                    self.interfaces, security_groups, primary_security_groups, subnet
                ),
                instance_market_options=_DATA.InstanceMarketOptionsProperty(market_type=market.market_type)
                if market.market_type
                else None,
                capacity_reservation_specification=_reservation(
                    market.reservation_id, market.resource_group_arn, market.preference
                ),
                placement=_DATA.PlacementProperty(group_name=placement_group.placement_group_name)
                if placement_group
                else None,
                block_device_mappings=[_root_volume(root_device, root_volume_gib, root_throughput_mbps, key)],
                metadata_options=_DATA.MetadataOptionsProperty(
                    http_endpoint="enabled",
                    http_tokens="required",
                    http_put_response_hop_limit=metadata_hop_limit,
                ),
                monitoring=_DATA.MonitoringProperty(enabled=detailed_monitoring),
                cpu_options=_cpu_options(instance_type, threads_per_core),
                user_data=Fn.base64(user_data) if user_data is not None else None,
                tag_specifications=_tags(
                    {"Name": f"{Stack.of(self).stack_name}/{construct_id}"} | dict(tags or {})
                ),
            ),
        )
        _accept_unpriced(self.resource, instance_type)
        self.launch_template_id = self.resource.ref
        self.latest_version_number = self.resource.attr_latest_version_number


def _efa_of(orchestrator: LaunchedBy, known: InstanceType) -> EfaKind:
    return "efa" if orchestrator == "pcs" and takes_combined_efa(known) else "efa-only"


def _interfaces(
    plan: Sequence[NetworkInterface],
    everywhere: Sequence[ec2.ISecurityGroup],
    primary: Sequence[ec2.ISecurityGroup],
    subnet: ec2.ISubnet | None,
) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty]:
    # each look at a CDK object crosses to Node.js, and a node may have 33 interfaces
    groups = [group.security_group_id for group in everywhere]
    first = list(dict.fromkeys([*groups, *(group.security_group_id for group in primary)]))
    subnet_id = subnet.subnet_id if subnet else None
    return [
        _DATA.NetworkInterfaceProperty(
            network_card_index=one.card,
            device_index=one.device,
            interface_type=one.kind,
            groups=first if number == 0 else groups,
            delete_on_termination=True,
            # with several interfaces EC2 assigns no public address, and the field may not be there
            associate_public_ip_address=False if len(plan) == 1 else None,
            subnet_id=subnet_id,
        )
        for number, one in enumerate(plan)
    ]


def _reservation(
    reservation_id: str | None, resource_group_arn: str | None, preference: str | None
) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
    if preference:
        return _DATA.CapacityReservationSpecificationProperty(capacity_reservation_preference=preference)
    if not (reservation_id or resource_group_arn):
        return None
    return _DATA.CapacityReservationSpecificationProperty(
        capacity_reservation_target=_DATA.CapacityReservationTargetProperty(
            capacity_reservation_id=reservation_id,
            capacity_reservation_resource_group_arn=resource_group_arn,
        )
    )


def _root_volume(
    device: str, gib: int, throughput: int, key: kms.IKey
) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    fast = throughput > INCLUDED_MBPS
    return _DATA.BlockDeviceMappingProperty(
        device_name=device,
        ebs=_DATA.EbsProperty(
            volume_type="gp3",
            volume_size=gib,
            throughput=throughput if fast else None,
            iops=root_iops(throughput) if fast else None,
            encrypted=True,
            kms_key_id=key.key_arn,
            delete_on_termination=True,
        ),
    )


def _cpu_options(known: InstanceType, threads: int | None) -> ec2.CfnLaunchTemplate.CpuOptionsProperty | None:
    if threads is None:
        return None
    if not known.threads_per_core or not known.vcpu:
        raise ValueError(
            f"threads_per_core of {known.name} is unknown or cannot be set "
            "(VCpuInfo.ValidThreadsPerCore of EC2 DescribeInstanceTypes); leave it out"
        )
    if threads not in known.threads_per_core:
        allowed = " or ".join(map(str, known.threads_per_core))
        raise ValueError(f"threads_per_core must be {allowed} on {known.name}, got {threads}")
    # EC2 takes both numbers or none; vcpu is counted at the default, the highest number of threads
    return _DATA.CpuOptionsProperty(
        core_count=known.vcpu // max(known.threads_per_core), threads_per_core=threads
    )


def _tags(tags: dict[str, str]) -> list[ec2.CfnLaunchTemplate.TagSpecificationProperty]:
    if reserved := [name for name in tags if name.lower().startswith("aws:")]:
        raise ValueError(f"tags must not begin with aws:, which is AWS's own prefix, got {reserved[0]}")
    return [
        _DATA.TagSpecificationProperty(
            resource_type=kind, tags=[CfnTag(key=name, value=value) for name, value in tags.items()]
        )
        for kind in ("instance", "volume", "network-interface")
    ]


def _check_capacity(
    scope: Construct,
    capacity: Capacity,
    orchestrator: LaunchedBy,
    group: ec2.IPlacementGroup | None,
    reserved_in_group: bool,
    known: InstanceType,
) -> None:
    if reserved_in_group and not group:
        raise ValueError("reserved_in_group without placement_group: name the group of the reservation")
    kind: PlacementKind = "none" if not group else "reservation-group" if reserved_in_group else "cluster"
    decision = decide(capacity, orchestrator=orchestrator, placement=kind, instance_type=known)
    if decision.severity == "error":
        raise ValueError(decision.message)
    if decision.severity == "warning":
        Annotations.of(scope).add_warning_v2(f"ultracluster:capacity:{decision.id}", decision.message)


def _check_groups(groups: Sequence[ec2.ISecurityGroup]) -> None:
    if not groups:
        raise ValueError(
            "security_groups must hold at least one group: without one EC2 puts the VPC's default group on "
            "the EFA interfaces (primary_security_groups are on the primary interface alone)"
        )


def _check_own_fields(orchestrator: LaunchedBy, given: Mapping[str, object | None]) -> None:
    if orchestrator == "ec2":
        return
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be in a launch template for {orchestrator}, which has its own field for it"
            )


def _check_user_data(user_data: str | None, orchestrator: LaunchedBy) -> None:
    if user_data is None or Token.is_unresolved(user_data):
        return
    size = len(user_data.encode())
    if size > USER_DATA_BYTES:
        raise ValueError(
            f"user_data must be at most {USER_DATA_BYTES} bytes, got {size}; fetch the rest from S3"
        )
    if orchestrator == "pcs" and "multipart/mixed" not in user_data:
        raise ValueError(
            "user_data must be a MIME multi-part document for PCS (AWS PCS User Guide, Working with Amazon "
            "EC2 user data), or a script in the node lifecycle actions of the compute node group"
        )


def _accept_unpriced(resource: ec2.CfnLaunchTemplate, known: InstanceType) -> None:
    """cfn-lint takes a Region's types from price lists; what is sold as blocks may have no price there."""
    region = Stack.of(resource).region
    priced = bool(known.regions) if Token.is_unresolved(region) else region in known.regions
    if not priced and (known.capacity_block_regions or known.declared):
        resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ["E3628"]}})

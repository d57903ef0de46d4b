"""The launch template of a node group (EC2 User Guide, "Store instance launch parameters").

Built on the L1, because the L2 has no network interfaces, reservation or market options (aws/aws-cdk#30891,
aws/aws-cdk#7928, aws/aws-cdk#14494) and rejects hyphenated families. Every part is a property class: a
dictionary with snake-case keys synthesises to `{}` without an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import CfnTag, Fn, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.catalog import instance_types as catalogue
from ultracluster.clusters.given import nodes_groups
from ultracluster.clusters.launch_template_checks import (
    LaunchedBy,
    check_capacity,
    check_groups,
    check_own_fields,
    check_user_data,
    default_efa,
)
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import OnDemand
from ultracluster.config.instance_types import type_by_name
from ultracluster.config.nodes import DeclaredInstanceType
from ultracluster.guard.objects import plain_groups, take_objects
from ultracluster.model.capacity import Capacity, market_options
from ultracluster.model.network_cards import EfaKind, NetworkInterface, network_card_plan
from ultracluster.model.orchestrators import TRAITS, Launcher
from ultracluster.model.root_volume import INCLUDED_MBPS, root_iops
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.security.cluster_key import ClusterKey, allow_use

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
        security_groups: on every interface.
        key: encrypts the root volume.
        resource: the `AWS::EC2::LaunchTemplate`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instance_type: str | InstanceType | ec2.InstanceType,
        root_device: str,
        vpc: ec2.IVpc | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        key: kms.IKey | ClusterKey | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        capacity: Capacity | None = None,
        orchestrator: LaunchedBy = "ec2",
        placement_group: ec2.IPlacementGroup | ClusterPlacementGroup | None = None,
        reserved_in_group: bool = False,
        efa: EfaKind | None = None,
        efa_interfaces: int | None = None,
        primary_security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] = (),
        subnet: ec2.ISubnet | None = None,
        image_id: str | None = None,
        instance_profile: iam.IInstanceProfile | None = None,
        root_volume_gib: int = 200,
        root_throughput_mbps: int = INCLUDED_MBPS,
        root_io2_iops: int | None = None,
        ena_express: Literal["tcp", "tcp-and-udp"] | None = None,
        threads_per_core: Literal[1, 2] | None = None,
        detailed_monitoring: bool = True,
        metadata_hop_limit: int = 1,
        user_data: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make the launch template.

        Args:
            instance_type: as EC2 writes it, as `ec2.InstanceType`, or from the catalogue
                (`ultracluster.catalog.instance_type`).
            root_device: name of the image's root device, `/dev/xvda` on Amazon Linux 2023 and `/dev/sda1` on
                Ubuntu. Another name adds a second volume and leaves the root as the image has it.
            vpc: needed where no `security_groups` are given; by default none.
            security_groups: on every interface. Each needs the self rules of EFA (`EfaSecurityGroup`, of
                which one is made by default, has them).
            key: encrypts the root volume; made by default. Who launches is added to its policy.
            instance_types: those that the catalogue does not have, by name; by default none.
            capacity: where the instances come from; on demand by default.
            orchestrator: who launches from it; "ec2" is an Auto Scaling group, a fleet or `run-instances`.
                EKS and PCS ask for Spot in a field of their own, so it is not in the template. By default
                `ec2`.
            placement_group: `placement_for` says whether there should be one; by default none.
            reserved_in_group: `placement_group` is the group in which the reservation was made; by default
                False.
            efa: kind of the EFA interfaces. By default `efa` on PCS, whose guide shows no other, where the
                type takes it; else `efa-only`, which needs one IP address per node.
            efa_interfaces: how many EFAs; by default all (see `network_card_plan`).
            primary_security_groups: only on the primary interface, e.g. what admits to a file system. By
                default none.
            subnet: written into each interface. Not with EKS and PCS, which have a subnet of their own: EKS
                refuses it with more than one interface (aws-samples/aws-efa-eks#19). By default none.
            image_id: AMI; by default the orchestrator's own.
            instance_profile: role of the nodes. Not with EKS and PCS, which have a field of their own for it.
                By default none.
            root_volume_gib: size of the root volume in GiB, at least that of the image; by default `200`.
            root_throughput_mbps: throughput of the root volume in MiB/s; 125 cost nothing; by default 125.
            root_io2_iops: makes the root volume an io2 one with so many I/O operations a second; by default
                it is gp3.
            ena_express: TCP, or TCP and UDP, by SRD to other instances that have it; by default none.
            threads_per_core: 1 turns simultaneous multithreading off; by default as the type has it.
            detailed_monitoring: CloudWatch metrics each minute instead of each five; by default True.
            metadata_hop_limit: 1 keeps containers in networks of their own away from the node's credentials;
                by default `1`.
            user_data: as text, at most 16 KiB; for PCS a MIME multi-part document. Not base64. By default
                none.
            tags: of each instance, its volumes and interfaces, with `Name`. The CDK's own `Tags` do not get
                there. By default none.

        Raises:
            ValueError: AWS would refuse the combination, or would not find the capacity; the text says what
                to do. What rests only on the catalogue is a warning of the CDK instead.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        capacity = capacity or OnDemand()
        if not isinstance(instance_type, InstanceType):
            name = instance_type if isinstance(instance_type, str) else instance_type.to_string()
            instance_type = _known(name, instance_types or {})
        if isinstance(placement_group, ClusterPlacementGroup):
            placement_group = placement_group.placement_group
        self.security_groups = (
            nodes_groups(self, None, vpc) if security_groups is None else plain_groups(security_groups)
        )
        self.key = key.key if isinstance(key, ClusterKey) else key or ClusterKey.of(self, None)
        if key is None:
            allow_use(self, self.key, *_launchers(orchestrator))
        check_capacity(self, capacity, orchestrator, placement_group, reserved_in_group, instance_type)
        check_groups(self.security_groups)
        check_own_fields(orchestrator, {"subnet": subnet, "instance_profile": instance_profile})
        check_user_data(user_data, orchestrator)
        self.interfaces = network_card_plan(
            instance_type,
            efa=efa or default_efa(orchestrator, instance_type),
            interfaces=efa_interfaces,
        )
        market = market_options(capacity, orchestrator=orchestrator)
        volume = _root_volume(root_device, root_volume_gib, root_throughput_mbps, root_io2_iops, self.key)
        self.resource = ec2.CfnLaunchTemplate(
            self,
            "Resource",
            launch_template_data=_DATA.LaunchTemplateDataProperty(
                instance_type=instance_type.name,
                image_id=image_id,
                iam_instance_profile=_profile(instance_profile),
                network_interfaces=_interfaces(
                    self.interfaces,
                    self.security_groups,
                    plain_groups(primary_security_groups),
                    subnet,
                    ena_express,
                ),
                instance_market_options=_market(market.market_type),
                capacity_reservation_specification=_reservation(
                    market.reservation_id, market.resource_group_arn, market.preference
                ),
                placement=_placement(placement_group),
                block_device_mappings=[volume],
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


def _profile(
    profile: iam.IInstanceProfile | None,
) -> ec2.CfnLaunchTemplate.IamInstanceProfileProperty | None:
    return _DATA.IamInstanceProfileProperty(arn=profile.instance_profile_arn) if profile else None


def _market(market_type: str | None) -> ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty | None:
    return _DATA.InstanceMarketOptionsProperty(market_type=market_type) if market_type else None


def _placement(group: ec2.IPlacementGroup | None) -> ec2.CfnLaunchTemplate.PlacementProperty | None:
    return _DATA.PlacementProperty(group_name=group.placement_group_name) if group else None


def _launchers(orchestrator: LaunchedBy) -> Sequence[Launcher]:
    return ("auto-scaling", "fleet", "spot") if orchestrator == "ec2" else TRAITS[orchestrator].launched_by


def _known(name: str, declared: Mapping[str, DeclaredInstanceType]) -> InstanceType:
    instance_type = type_by_name(name, declared)
    if instance_type is None:
        near = ", ".join(difflib.get_close_matches(name, catalogue(), n=2)) or "none is like it"
        raise ValueError(
            f"instance_type: the catalogue has no instance type {name!r} ({near}); declare it in "
            "instance_types="
        )
    return instance_type


def _interfaces(
    plan: Sequence[NetworkInterface],
    everywhere: Sequence[ec2.ISecurityGroup],
    primary: Sequence[ec2.ISecurityGroup],
    subnet: ec2.ISubnet | None,
    ena_express: str | None,
) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty]:
    # each look at a CDK object crosses to Node.js, and a node may have 33 interfaces
    groups = [group.security_group_id for group in everywhere]
    first = list(dict.fromkeys([*groups, *(group.security_group_id for group in primary)]))
    subnet_id = subnet.subnet_id if subnet else None
    return [
        _DATA.NetworkInterfaceProperty(
            network_card_index=interface.card,
            device_index=interface.device,
            interface_type=interface.kind,
            groups=first if number == 0 else groups,
            delete_on_termination=True,
            # with several interfaces EC2 assigns no public address, and the field may not be there
            associate_public_ip_address=False if len(plan) == 1 else None,
            subnet_id=subnet_id,
            # an interface that is EFA alone has no ENA device
            ena_srd_specification=None if interface.kind == "efa-only" else _ena_express(ena_express),
        )
        for number, interface in enumerate(plan)
    ]


def _ena_express(asked: str | None) -> ec2.CfnLaunchTemplate.EnaSrdSpecificationProperty | None:
    if asked is None:
        return None
    udp = _DATA.EnaSrdUdpSpecificationProperty(ena_srd_udp_enabled=True) if asked == "tcp-and-udp" else None
    return _DATA.EnaSrdSpecificationProperty(ena_srd_enabled=True, ena_srd_udp_specification=udp)


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
    device: str, gib: int, throughput: int, io2_iops: int | None, key: kms.IKey
) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    fast = throughput > INCLUDED_MBPS and io2_iops is None
    return _DATA.BlockDeviceMappingProperty(
        device_name=device,
        ebs=_DATA.EbsProperty(
            volume_type="gp3" if io2_iops is None else "io2",
            volume_size=gib,
            throughput=throughput if fast else None,
            iops=root_iops(throughput) if fast else io2_iops,
            encrypted=True,
            kms_key_id=key.key_arn,
            delete_on_termination=True,
        ),
    )


def _cpu_options(
    instance_type: InstanceType, threads: int | None
) -> ec2.CfnLaunchTemplate.CpuOptionsProperty | None:
    if threads is None:
        return None
    if not instance_type.threads_per_core or not instance_type.vcpu:
        raise ValueError(
            f"threads_per_core of {instance_type.name} is unknown or cannot be set "
            "(VCpuInfo.ValidThreadsPerCore of EC2 DescribeInstanceTypes); leave it out"
        )
    if threads not in instance_type.threads_per_core:
        allowed = " or ".join(map(str, instance_type.threads_per_core))
        raise ValueError(f"threads_per_core must be {allowed} on {instance_type.name}, got {threads}")
    # EC2 takes both numbers or none; vcpu is counted at the default, the highest number of threads
    return _DATA.CpuOptionsProperty(
        core_count=instance_type.vcpu // max(instance_type.threads_per_core), threads_per_core=threads
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


def _accept_unpriced(resource: ec2.CfnLaunchTemplate, instance_type: InstanceType) -> None:
    """cfn-lint takes a Region's types from price lists; what is sold as blocks may have no price there."""
    region = Stack.of(resource).region
    priced = bool(instance_type.regions) if Token.is_unresolved(region) else region in instance_type.regions
    if not priced and (instance_type.capacity_block_regions or instance_type.declared):
        resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ["E3628"]}})

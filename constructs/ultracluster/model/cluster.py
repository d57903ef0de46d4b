"""What an environment comes to, worked out once.

`resolve` takes an environment whose shape is right, whether or not its rules hold: what cannot be worked out
(an unknown instance type, a network that does not fit) is None or an estimate, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ultracluster.catalog import InstanceType, Region, region
from ultracluster.catalog.images import volume_group
from ultracluster.config import Environment
from ultracluster.config.instance_types import type_by_name
from ultracluster.config.kubernetes import Eks, HyperPodEks, Karpenter, KarpenterAutoscaling
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.nodes import NodeGroup, RestrictedGroup, Role
from ultracluster.config.orchestrator import Orchestrator, OrchestratorKind, ParallelCluster, Pcs
from ultracluster.model.capacity import Capacity, Placement, placement_for
from ultracluster.model.network_cards import EfaKind, NetworkInterface, network_card_plan
from ultracluster.model.orchestrators import TRAITS, Launcher, Traits

SECOND_VOLUME_GIB = 500
"""Facts of a node of HyperPod, where nothing else is asked for."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A node group with what is known of it."""

    name: str
    settings: NodeGroup
    traits: Traits
    type: InstanceType | None
    """None where neither the catalogue nor the environment knows it."""
    further_types: tuple[InstanceType | None, ...] = ()
    """Of `instance_types`, in their order; None for an unknown one."""
    partition: str | None = None
    """Of Slurm; None for groups that run no jobs, and under Kubernetes."""
    most_nodes: int
    """Nodes that the group may have at once."""
    zone_id: str
    """Of its nodes."""
    efa: EfaKind = "efa-only"
    """Kind of the EFA interfaces that are asked for, where we lay them out."""
    by_karpenter: bool = False
    """Karpenter launches the nodes, for pods or as a fixed number."""
    for_pods: bool = False
    """Nodes come and go with the pods that need them."""

    @property
    def role(self) -> Role:
        return self.settings.role

    @property
    def capacity(self) -> Capacity:
        return self.settings.capacity

    @property
    def types(self) -> tuple[InstanceType | None, ...]:
        """Its type, then the further ones; None for an unknown one."""
        return (self.type, *self.further_types)

    @property
    def known_types(self) -> tuple[InstanceType, ...]:
        """The type and the further types, without unknown ones."""
        return tuple(known for known in self.types if known)

    @property
    def checked_type(self) -> InstanceType:
        """The type of a group in an environment that passed the rules: they reject an unknown one."""
        assert self.type, f"{self.settings.instance_type}: the rules reject unknown types"
        return self.type

    @property
    def restricted(self) -> RestrictedGroup | None:
        """What makes the group a restricted one of HyperPod; None for all others."""
        return self.settings.restricted

    @property
    def in_service(self) -> bool:
        """Whether AWS runs the nodes in an account of its own (HyperPod)."""
        traits = self.traits
        # a role that the orchestrator lacks is refused by a rule; until then it is like compute
        return self.role in traits.service_roles or (traits.hyperpod and self.role not in traits.roles)

    @property
    def image_has_disks(self) -> bool:
        """Return whether the image makes the data volume of local disks for every type of the group; what the
        image of a restricted group does is not published."""
        return (
            self.in_service
            and self.restricted is None
            and volume_group(self.traits.software_family) is not None
            and all(kind is not None and kind.local_nvme_disks for kind in self.types)
        )

    @property
    def second_volume_gib(self) -> int | None:
        """Size of the second EBS volume of a node of HyperPod; None for no volume."""
        if not self.in_service:
            return None
        return self.settings.volume_gib or (None if self.image_has_disks else SECOND_VOLUME_GIB)

    @property
    def launcher(self) -> OrchestratorKind:
        """The orchestrator that launches the nodes: EKS does the system nodes of HyperPod on EKS."""
        other = self.traits.launches_system_nodes
        return other if other and not self.in_service else self.traits.kind

    @property
    def from_template(self) -> bool:
        """Whether a launch template of ours launches the nodes."""
        return not self.in_service and bool(self.traits.launched_by)

    @property
    def accelerator_memory_gib(self) -> float:
        """Of all nodes that there may be; 0 without accelerators, and for an unknown type."""
        accelerator = self.type.accelerator if self.type else None
        return accelerator.memory_gib * self.most_nodes if accelerator else 0

    @cached_property
    def interfaces(self) -> tuple[NetworkInterface, ...] | None:
        """The network interfaces that a node is launched with; None where AWS lays them out, or where the
        cards of the type are unknown."""
        if self.in_service or self.type is None:
            return None
        if self.role != "compute":
            return (NetworkInterface(card=0, device=0, kind="interface"),)
        try:
            return network_card_plan(self.type, efa=self.efa)
        except ValueError:  # a type whose cards are unknown, or which takes another kind: rules say so
            return None

    @property
    def interface_count(self) -> int:
        """Network interfaces of one node, those without an address included.

        HyperPod lays them out by itself: one for each network card is the best estimate (AWS publishes 32
        addresses for P5, which has 32 cards). 1 where nothing is known.
        """
        if self.in_service:
            return max(1, self.type.network_cards) if self.type else 1
        return len(self.interfaces) if self.interfaces else 1

    @property
    def placement(self) -> Placement | None:
        """What placement the nodes are launched with; None where AWS places them, or the type is unknown."""
        if self.in_service or self.type is None or self.role != "compute":
            return None
        capacity = self.capacity
        try:
            return placement_for(
                capacity,
                instance_type=self.type,
                orchestrator=self.traits.kind,
                reserved_in_group=capacity.kind == "reservation" and capacity.placement_group is not None,
                declined=self.settings.placement_group == "none",
            )
        except ValueError:  # no group can be named: a rule says so
            return None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """An environment with everything that follows from it."""

    environment: Environment
    """What was asked for."""
    traits: Traits
    groups: Mapping[str, Group]
    """Node groups by name, in the order of the file."""

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def cluster_name(self) -> str:
        """As its service knows it."""
        return self.environment.cluster_name

    @property
    def region(self) -> str:
        return self.environment.region

    @property
    def log_group(self) -> str:
        """How the name of the cluster's log group begins; empty where its service has none."""
        return self.traits.log_group.format(cluster=self.cluster_name)

    @cached_property
    def home(self) -> Region | None:
        """What is known of the Region; None for an unknown one."""
        return region(self.environment.region)

    @property
    def settings(self) -> Orchestrator:
        """What is asked of the orchestrator itself."""
        return self.environment.orchestrator

    @cached_property
    def lustre(self) -> LustreFacts | None:
        """The first one."""
        return self.environment.lustre

    @cached_property
    def lustres(self) -> Mapping[str, LustreFacts]:
        """All Lustre file systems by name, in the order of the file; the first is `storage.lustre`."""
        return self.environment.lustres

    def lustres_of(self, group: str) -> dict[str, LustreFacts]:
        """Those that the nodes of a group mount, or its pods."""
        return {name: lustre for name, lustre in self.lustres.items() if lustre.mounted_by(group)}

    def lustre_of(self, group: str) -> LustreFacts | None:
        """The first of those that a group mounts: where its jobs keep what they write."""
        return next(iter(self.lustres_of(group).values()), None)

    def lustre_efa_interfaces(self, group: str) -> int | None:
        """EFA interfaces that Lustre has on a node of a group: of its type, or the fewest that a file system
        with EFA allows. None where the type is not known."""
        kind = self.groups[group].type
        usual = kind.lustre_efa_interfaces if kind else None
        allowed = [one.efa_interfaces_per_client for one in self.lustres_of(group).values() if one.efa]
        return min((one for one in (usual, *allowed) if one is not None), default=None)

    @property
    def mounts_differ(self) -> bool:
        """Whether some groups mount other Lustre file systems than others."""
        return any(lustre.groups for lustre in self.lustres.values())

    @property
    def kubernetes(self) -> Eks | HyperPodEks | None:
        """Settings of the Kubernetes control plane; None under Slurm."""
        return self.environment.kubernetes

    @property
    def karpenter(self) -> Karpenter | None:
        """Karpenter of our own, on EKS."""
        return _karpenter(self.environment)

    @property
    def autoscaling(self) -> KarpenterAutoscaling | None:
        """HyperPod's own Karpenter."""
        return _autoscaling(self.environment)

    @property
    def by_cloudformation(self) -> bool:
        """Whether CloudFormation makes the cluster; else the pcluster command does, from a file."""
        return not (isinstance(self.settings, ParallelCluster) and self.settings.deploy_with == "pcluster")

    @property
    def root_device(self) -> str | None:
        """Name of the nodes' root device where the file says it (PCS); None where it follows the image."""
        settings = self.settings
        return settings.root_device if isinstance(settings, Pcs) else None

    @property
    def runs_scripts(self) -> bool:
        """Whether nodes run our lifecycle scripts."""
        return self.settings.lifecycle != "none"

    @property
    def keeps_accounts(self) -> bool:
        """Whether Slurm may keep accounts: PCS can be told to keep none."""
        return not (isinstance(self.settings, Pcs) and self.settings.accounting.mode == "none")

    @property
    def second_zones(self) -> tuple[str, ...]:
        """Zone ids beside that of the nodes: of the control plane, of the accounting database."""
        database = self.environment.storage.accounting_database
        asked = (
            self.kubernetes.second_zone_id if self.kubernetes else None,
            database.second_zone_id if database is not None and database.kind == "rds-mysql" else None,
        )
        return tuple(zone for zone in asked if zone)

    @property
    def further_zones(self) -> dict[str, dict[str, Group]]:
        """Groups in other zones than that of the network, by zone id and name."""
        home = self.environment.network.zone_id
        found: dict[str, dict[str, Group]] = {}
        for name, group in self.groups.items():
            if group.zone_id != home:
                found.setdefault(group.zone_id, {})[name] = group
        return found

    def instance_type(self, name: str) -> InstanceType | None:
        """A type that the environment may meet, from the catalogue or declared in the file."""
        return _type(self.environment, name)

    def with_role(self, role: Role) -> dict[str, Group]:
        """The groups of one role, by name."""
        return {name: group for name, group in self.groups.items() if group.role == role}

    @property
    def in_account(self) -> dict[str, Group]:
        """The groups whose instances are in the user's account; HyperPod's are not."""
        return {name: group for name, group in self.groups.items() if not group.in_service}

    @property
    def by_karpenter(self) -> dict[str, Group]:
        """The groups that Karpenter of our own launches."""
        return {name: group for name, group in self.groups.items() if group.by_karpenter}

    @property
    def launched_by(self) -> tuple[Launcher, ...]:
        """Who launches nodes in the user's account and must be able to use the key of their volumes."""
        fleets: tuple[Launcher, ...] = ("spot", "fleet") if self.by_karpenter else ()
        return (*self.traits.launched_by, *fleets)

    @property
    def in_service(self) -> dict[str, Group]:
        """The groups that HyperPod runs."""
        return {name: group for name, group in self.groups.items() if group.in_service}

    @property
    def partitions(self) -> dict[str, dict[str, Group]]:
        """Compute groups by partition of Slurm."""
        found: dict[str, dict[str, Group]] = {}
        for name, group in self.groups.items():
            if group.partition is not None:
                found.setdefault(group.partition, {})[name] = group
        return found


def resolve(environment: Environment) -> Cluster:
    """What `environment` comes to; the same object however often it is asked for."""
    known: Cluster | None = environment._resolved  # pyright: ignore[reportPrivateUsage]
    if known is None or known.environment is not environment:  # a copy brings that of its original
        known = _resolve(environment)
        environment._resolved = known  # pyright: ignore[reportPrivateUsage]
    return known


def _resolve(environment: Environment) -> Cluster:
    traits = TRAITS[environment.orchestrator.kind]
    return Cluster(
        environment=environment,
        traits=traits,
        groups={
            name: _group(environment, traits, name, group) for name, group in environment.node_groups.items()
        },
    )


def _group(environment: Environment, traits: Traits, name: str, settings: NodeGroup) -> Group:
    karpenter, autoscaling = _karpenter(environment), _autoscaling(environment)
    compute = settings.role == "compute"
    scaled = autoscaling is not None and compute and settings.count == 0
    by_karpenter = karpenter is not None and name in karpenter.groups
    most = settings.max_nodes
    return Group(
        name=name,
        settings=settings,
        traits=traits,
        type=_type(environment, settings.instance_type),
        further_types=tuple(_type(environment, one) for one in settings.instance_types),
        partition=(settings.partition or name) if compute and traits.slurm else None,
        zone_id=settings.zone_id or environment.network.zone_id,
        most_nodes=max(most, autoscaling.max_nodes) if scaled and autoscaling else most,
        efa=settings.efa_interface or _efa_interface(environment),
        by_karpenter=by_karpenter,
        for_pods=scaled or (by_karpenter and settings.count == 0),
    )


def _type(environment: Environment, name: str) -> InstanceType | None:
    return type_by_name(name, environment.instance_types)


def _efa_interface(environment: Environment) -> EfaKind:
    settings = environment.orchestrator
    return settings.efa_interface if isinstance(settings, ParallelCluster | Pcs) else "efa-only"


def _karpenter(environment: Environment) -> Karpenter | None:
    asked = environment.orchestrator
    return asked.karpenter if isinstance(asked, Eks) else None


def _autoscaling(environment: Environment) -> KarpenterAutoscaling | None:
    asked = environment.orchestrator
    return asked.autoscaling if isinstance(asked, HyperPodEks) else None

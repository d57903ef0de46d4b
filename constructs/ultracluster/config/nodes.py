"""Node groups: which instances, how many, from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

from ultracluster.catalog.instances import example_type
from ultracluster.config.base import IN_LINES, ON_ONE_LINE, BucketName, ImageName, Line, Many, Model, named_by
from ultracluster.config.capacity import Capacity, OnDemand
from ultracluster.config.lifecycle_steps import StepName
from ultracluster.config.network import ZoneId
from ultracluster.config.slurm import GresRecord, PartitionName, SlurmSettings

Role = Literal["controller", "login", "compute", "system"]
GroupName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$", max_length=63)]
InstanceTypeName = Annotated[
    str, Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$", examples=[example_type()]), named_by("to_string")
]


class NamesInstanceType(Protocol):
    """The CDK's `ec2.InstanceType`, which this module does not load."""

    def to_string(self) -> str:
        """Its name, as EC2 writes it."""
        ...


if TYPE_CHECKING:

    class _TypeOfNode:
        """For type checkers: what is written as a text or as an object of the CDK, and read as a text."""

        def __get__(self, instance: object, owner: type[object] | None = None) -> str: ...
        def __set__(self, instance: object, value: str | NamesInstanceType) -> None: ...
else:
    _TypeOfNode = InstanceTypeName

GROUP_LABEL, ROLE_LABEL = "ultracluster/node-group", "ultracluster/role"
"""Labels of Kubernetes nodes: the node's group and its role."""
MOST_NODES = 6758
"""Of one group, by HyperPod's API (InstanceCount)."""


class ScheduledPatching(Model):
    """Software updates of HyperPod at fixed times (`ScheduledUpdateConfig`)."""

    kind: Literal["scheduled"] = "scheduled"
    schedule: Annotated[str, Field(pattern=r"^cron\([A-Za-z0-9*?,/#: -]+\)$", max_length=256)]
    """When, as `cron(minutes hours day-of-month month day-of-week year)`, UTC."""
    batch_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Share of the group that is updated at once; all at once by default."""
    wait_seconds: Annotated[int, Field(ge=0, le=3600)] = 0
    """Pause in seconds before an old node is ended."""
    rollback_alarms: Annotated[Many[Line], Field(max_length=10)] = ()
    """CloudWatch alarm names; one in alarm rolls the update back."""


class AutomaticPatching(Model):
    """Software updates of HyperPod when nodes are idle (`AutoPatchConfig`)."""

    kind: Literal["when-idle", "when-all-idle"] = "when-idle"
    batch_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Share of the group that is updated at once; all at once by default."""
    wait_seconds: Annotated[int, Field(ge=0, le=3600)] = 0
    """Pause in seconds before an old node is ended."""
    rollback_alarms: Annotated[Many[Line], Field(max_length=10)] = ()
    """CloudWatch alarm names; one in alarm rolls the update back."""


Patching = Annotated[ScheduledPatching | AutomaticPatching, Field(discriminator="kind")]


class Taint(Model):
    """A Kubernetes taint: only pods that tolerate it are placed on the nodes."""

    key: Annotated[str, Field(min_length=1, max_length=316), ON_ONE_LINE]
    """Key, with a prefix as `nvidia.com/gpu` has it."""
    value: Annotated[str, Field(max_length=63), ON_ONE_LINE] = ""
    """Value; may be empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods that do not tolerate it."""


MigProfile = Annotated[str, Field(pattern=r"^[1-9]g\.[0-9]+gb(\+me)?$", examples=["1g.10gb", "1g.10gb+me"])]
MigProfiles = dict[MigProfile, Annotated[int, Field(ge=1, le=7)]]
"""Instances of each profile on one GPU."""


class RestrictedLustre(Model):
    """A Lustre file system that HyperPod makes for restricted groups, and AWS bills to this account."""

    capacity_gib: Annotated[int, Field(ge=1200, le=100_800)]
    """Size in GiB."""
    throughput_mbps_per_tib: Literal[125, 250, 500, 1000]
    """Throughput in MB/s for each TiB."""


class SharedRestrictedLustre(RestrictedLustre):
    """One Lustre file system for all restricted groups of the cluster."""

    keep: bool = True
    """It stays when the last restricted group is gone; else HyperPod deletes it then, with its data."""


class RestrictedGroup(Model):
    """What makes a group restricted: its nodes only run AWS's images that customise Amazon Nova models, in a
    network of AWS's without internet. Nobody logs in to them, and none of our scripts run there."""

    lustre: RestrictedLustre | None = None
    """A Lustre file system of the group's own; by default `orchestrator.restricted_lustre`."""
    reads: Many[BucketName] = ()
    """S3 buckets with training data, which its jobs read."""
    writes: Many[BucketName] = ()
    """S3 buckets that its jobs write results to."""


class NodeGroup(Model):
    """Nodes of one role and instance type."""

    role: Role
    """`controller` runs slurmctld, `login` is where people log in, `compute` runs jobs, `system` the
    add-ons of Kubernetes."""
    instance_type: _TypeOfNode
    """As EC2 writes it, without `ml.`."""
    instance_types: Annotated[Many[InstanceTypeName], Field(max_length=19)] = ()
    """HyperPod on EKS: further types, in this order, where `instance_type` cannot be had."""
    count: Annotated[int, Field(ge=0, le=MOST_NODES)]
    """Nodes wanted, whether or not they have work."""
    min_count: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    """HyperPod: nodes without which the group is rolled back; equal to `count` is all or nothing."""
    max_count: Annotated[int, Field(ge=0, le=MOST_NODES)] | None = None
    """Nodes at the most, where the scheduler may add some for a job; `count` by default. Not on
    HyperPod."""
    capacity: Capacity = OnDemand.model_construct()
    """Where the instances come from."""
    zone_id: ZoneId | None = None
    """Zone of the group, one of `network.further_zones`; that of the network by default. HyperPod, and head,
    login and system nodes of a Local Zone. Cannot change later. For Spot and for serving models: EFA does not
    leave a zone, so no job spans two."""
    placement_group: Literal["none"] | None = None
    """`none` launches nodes with EFA without the cluster placement group that they get by default, where EC2
    cannot find room for all of them close together. A reservation's own group is named in `capacity`. Not on
    HyperPod, which places its instances itself."""
    partition: PartitionName | None = None
    """Slurm partition of a compute group."""
    volume_gib: Annotated[int, Field(ge=1, le=16_384)] | None = None
    """HyperPod: second EBS volume in GiB, mounted at /opt/sagemaker; its root volume is fixed at
    100 GB. By default 500; with EKS none for instance types with local disks, which HyperPod's image mounts
    there."""
    root_volume_gib: Annotated[int, Field(ge=20, le=16_384)] = 200
    """Root volume in GiB, at least that of the image. Not on HyperPod."""
    root_volume_throughput_mbps: Annotated[int, Field(ge=125, le=1000)] | None = None
    """Throughput of the root volume in MiB/s; by default 1000 for compute groups with accelerators, so that
    container images are there sooner, else the 125 that cost nothing. Not on HyperPod."""
    root_volume_iops: Annotated[int, Field(ge=100, le=256_000)] | None = None
    """Makes the root volume an io2 Block Express one with so many I/O operations a second, at most 1,000 for
    each GiB; gp3 by default. For latency below a millisecond, and more operations than gp3 has. Not on
    HyperPod."""
    ena_express: Literal["tcp", "tcp-and-udp"] | None = None
    """EKS's managed groups and PCS: TCP, or TCP and UDP, between nodes that have it goes by SRD, of which one
    flow gets up to 25 Gbit/s instead of 5. EFA needs none of it."""
    threads_per_core: Literal[1, 2] | None = None
    """1 turns simultaneous multithreading off. By default no number is sent, and nodes have the threads of
    their instance type, on HyperPod as with EC2: a number that a type does not take is refused."""
    efa_interface: Literal["efa", "efa-only"] | None = None
    """`efa-only` interfaces take no IP address; the service's choice by default."""
    deep_health_checks: Many[Literal["instance-stress", "instance-connectivity"]] = ()
    """HyperPod: tests of about two hours that each new node passes before it takes jobs."""
    image: ImageName | None = None
    """AMI of the nodes, or the parameter of Systems Manager that holds its id, e.g.
    `/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id`, with `:3` in its version 3; by default
    the orchestrator's own. On HyperPod one made from its image; PCS has no default."""
    image_release: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", max_length=64)] | None = None
    """HyperPod: release of its own image, `2.1.0`, in which a new group is made; the newest by default."""
    patching: Patching | None = None
    """HyperPod: software updates; by default only by hand."""
    lifecycle_steps: Many[StepName] | None = None
    """Which of the environment's own steps its nodes run, by name without number: `[proxy]`; all by default,
    `[]` is none."""
    slurm_settings: SlurmSettings = {}
    """ParallelCluster and PCS: parameters of these nodes in slurm.conf, e.g. `Weight: 10`."""
    restricted: RestrictedGroup | None = None
    """HyperPod on EKS: the nodes are kept for customising Amazon Nova models (a restricted instance group).
    Cannot be added to, or taken from, a group that exists."""
    gres: Many[GresRecord] = ()
    """PCS: lines of gres.conf for these nodes, in place of what is written for their GPUs. What jobs may ask
    for is counted in `slurm_settings: {Gres: ...}`."""
    scaledown_seconds: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """PCS: seconds after which idle nodes of this group above `count` end; by default the cluster's. From
    Slurm 25.11 on."""
    labels: dict[Line, Line] = {}
    """Kubernetes labels of the nodes."""
    taints: Many[Taint] = ()
    """Kubernetes taints of the nodes."""
    mig_profile: MigProfile | None = None
    """Kubernetes and PCS: cut each GPU into as many MIG instances of this profile as fit, each with memory of
    its own. On Kubernetes the MIG manager of `gpu_plugin: gpu-operator` does it when a node joins, on PCS a
    node step at each boot; jobs of Slurm ask for `--gres=gpu:1g.10gb:1`. `+me` is the one instance of a GPU
    that has its media engines."""
    mig_layout: Literal["all-balanced"] | MigProfiles | Many[MigProfiles] | None = None
    """Kubernetes and PCS: MIG instances of several profiles, in place of `mig_profile`: `all-balanced`, which
    is two small ones, one of twice and one of four times their memory; numbers by profile for each GPU,
    `{1g.10gb: 3, 4g.40gb: 1}`; or a list of such, one for each GPU of a node, where `{}` leaves a GPU whole.
    Kubernetes' quotas of teams count GPUs then, each with its part of a node's instances."""
    gpu_time_slices: Annotated[int, Field(ge=2, le=64)] | None = None
    """EKS: hand each GPU to so many pods at once, which take turns and share its memory. They ask for
    `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`."""

    @property
    def mig_key(self) -> Literal["mig_layout", "mig_profile"] | None:
        """The field that cuts the GPUs; None where none does."""
        return "mig_profile" if self.mig_profile else "mig_layout" if self.mig_layout else None

    @property
    def image_parameter(self) -> str | None:
        """The parameter that `image` names; None for an AMI id."""
        return self.image if self.image and self.image.startswith("/") else None

    @property
    def image_in_template(self) -> str | None:
        """`image` as a template of CloudFormation says it.

        A parameter is read by a dynamic reference, never through a parameter of the template: of that
        CloudFormation takes the newest value at each update of the stack, and would replace all nodes.
        """
        return f"{{{{resolve:ssm:{self.image}}}}}" if self.image_parameter else self.image

    @property
    def max_nodes(self) -> int:
        """Nodes that the group may have at once."""
        return max(self.count, self.max_count or 0)


class DeclaredInstanceType(Model):
    """An instance type that AWS has announced but not published in its API, or that is newer than
    this release's catalogue."""

    vcpu: Annotated[int, Field(gt=0)]
    memory_gib: Annotated[float, Field(gt=0)]
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    accelerator: Line
    """Name of one accelerator, e.g. `NVIDIA GB300`."""
    accelerators: Annotated[int, Field(ge=0)]
    """Accelerators per instance."""
    accelerator_memory_gib: Annotated[float, Field(ge=0)] = 0
    """Memory of all accelerators of one instance in GiB."""
    network_gbps: Annotated[float, Field(gt=0)]
    """EFA bandwidth of one instance in Gbit/s."""
    network_cards: Annotated[int, Field(gt=0)]
    efa_interfaces: Annotated[int, Field(ge=0)]
    """EFA interfaces of one instance."""
    addresses: Annotated[int, Field(gt=0)]
    """IPv4 addresses that one node takes in the subnet."""
    link: Literal["NVLink", "NeuronLink", "PCIe"] | None = None
    """What joins the accelerators of one instance; `PCIe` where nothing else does."""
    nvswitch: bool | None = None
    """Its GPUs are joined by NVSwitches, whose fabric manager runs on the instance."""
    imex: bool | None = None
    """Its GPUs reach those of other instances of an UltraServer over NVLink."""
    lustre_efa_interfaces: Annotated[int, Field(ge=0)] | None = None
    """EFA interfaces that FSx's client set-up binds; 0: it mounts Lustre over TCP."""
    lustre_gds_client: bool | None = None
    """FSx supports GPUDirect Storage on it."""
    network_like: InstanceTypeName | None = None
    """Type of the catalogue on whose network cards its EFA interfaces are laid out. Without it only HyperPod,
    which lays them out itself, can launch the type."""
    ultraservers: Many[Line] = ()
    """UltraServers of the catalogue whose instances have this type, e.g. `trn3-gen1`."""
    announced: bool = False
    """AWS has announced it, and its API does not have the name yet: nodes cannot be launched until it does.
    Groups may leave it unused."""
    source: Annotated[str, Field(min_length=10), IN_LINES]
    """Where these figures come from."""


__all__ = [
    "MOST_NODES",
    "AutomaticPatching",
    "DeclaredInstanceType",
    "GroupName",
    "InstanceTypeName",
    "NodeGroup",
    "Patching",
    "RestrictedGroup",
    "RestrictedLustre",
    "Role",
    "ScheduledPatching",
    "SharedRestrictedLustre",
    "Taint",
]

"""Rules on HyperPod on EKS: labels, taints and further types of node groups."""

from __future__ import annotations

from ultracluster.catalog import InstanceType, instance_types, nearest_instance_types
from ultracluster.catalog.mig import is_partition, mig_profiles
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL, ROLE_LABEL
from ultracluster.config.remedy import anywhere, ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.model.mig import gpu_layouts
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.hyperpod.groups import GROUP_API, HyperPod, continuous
from ultracluster.rules.sets import HPE

FLEXIBLE = f"{GROUP_API} (InstanceRequirements)"
_MOST_LABELS = 50
_OWN_LABELS = (GROUP_LABEL, ROLE_LABEL)
_HYPERPOD_ONLY = (
    "deep_health_checks",
    "efa_interface",
    "instance_types",
    "mig_layout",
    "mig_profile",
    "min_count",
    "patching",
    "volume_gib",
)


@HPE.error(16, "SageMaker API reference, CreateCluster (InstanceGroups: at least one)")
def compute_group_exists(cluster: Cluster) -> Breaches:
    """HyperPod has at least one group."""
    if not cluster.with_role("compute"):
        yield at("node_groups").breach(
            "no group has the role `compute`, and EKS runs the system nodes: HyperPod refuses a cluster "
            "without groups.",
            ask("decision", "a group with role: compute, or orchestrator.kind: eks"),
        )


@HPE.error(17, "EKS API reference, CreateNodegroup: system nodes are a managed node group")
def hyperpod_settings_on_system(group: Group) -> Breaches:
    """Only HyperPod's groups use what only HyperPod has."""
    if group.role != "system":
        return
    values = dict(group.settings)
    for key in _HYPERPOD_ONLY:
        if key in group.settings.model_fields_set and values[key] not in (None, ()):
            yield at(key).breach(
                f"`{key}` would be ignored: EKS manages system nodes, and only HyperPod has it.", drop()
            )


@HPE.error(30, "SageMaker API reference, ClusterKubernetesConfig (Labels)")
def label_count(group: Group) -> Breaches:
    """A group has at most 50 labels, including those that this package adds."""
    kind, labels = group.type, len(group.settings.labels)
    gpu = bool(kind and kind.accelerator and kind.accelerator.manufacturer == "NVIDIA")
    ours = len(_OWN_LABELS) + gpu + bool(group.settings.mig_key)
    if group.in_service and labels <= _MOST_LABELS < labels + ours:
        yield at("labels").breach(
            f"{labels} labels, and this package adds {ours} that say what the node is; HyperPod takes at "
            f"most {_MOST_LABELS} together.",
            ask("decision", f"{_MOST_LABELS - ours} or fewer"),
        )


@HPE.error(36, FLEXIBLE)
def flexible_group_provisioning(group: Group, hyperpod: HyperPod) -> Breaches:
    """A group of several types uses continuous provisioning and no training plan."""
    if not group.in_service or not group.further_types:
        return
    if hyperpod.provisioning != "continuous":
        yield at("instance_types").breach(
            "HyperPod refuses several types with classic provisioning.", continuous(hyperpod) | drop()
        )
    if group.capacity.kind == "training-plan":
        yield at("instance_types").breach(
            f"a training plan holds instances of one type; others than {group.settings.instance_type} would "
            "never come from it.",
            drop(),
        )


@HPE.warning(
    37,
    f"{FLEXIBLE}; SageMaker Developer Guide, Flexible instance groups, whose example mixes kinds, "
    "and Deep health checks",
    "2026-11-22",
)
def flexible_group_architecture(group: Group) -> Breaches:
    """All types of a group have the same accelerators and architecture."""
    first = group.type
    if not group.in_service or first is None:
        return
    for index, kind in enumerate(group.further_types):
        if kind is None or _kind(kind) == _kind(first):
            continue
        alike = [
            one.name
            for one in instance_types().values()
            if one.hyperpod
            and one.name not in (first.name, *group.settings.instance_types)
            and _kind(one) == _kind(first)
        ]
        yield at("instance_types", index).breach(
            f"{kind.name} has {_words(kind)}, {first.name} has {_words(first)}. HyperPod takes it, as "
            "for inference; a training job that gets both is as slow as the slower, or does not run.",
            (write(alike[0]) if alike else drop()).noting("or acknowledge that no job spans both"),
        )


@HPE.error(38, FLEXIBLE)
def flexible_group_types_unique(group: Group) -> Breaches:
    """Each type of a group is listed once."""
    before = [group.settings.instance_type]
    for index, name in enumerate(group.settings.instance_types):
        if name in before and group.in_service:
            yield at("instance_types", index).breach(f"{name} is already listed above.", drop())
        before.append(name)


@HPE.error(39, "the catalogue: instances.json, general_instances.json")
def flexible_group_types_known(group: Group) -> Breaches:
    """Every further type of a group is a known instance type."""
    names = group.settings.instance_types
    for index, kind in enumerate(group.further_types):
        if kind is None and group.in_service:
            near = [
                one
                for one in nearest_instance_types(names[index])
                if one not in (group.settings.instance_type, *names) and instance_types()[one].hyperpod
            ]
            yield at("instance_types", index).breach(
                f"{names[index]} is not a known instance type.",
                (write(near[0]) if near else drop()).noting("or declare it under instance_types"),
            )


def _kind(kind: InstanceType) -> tuple[str, str, int]:
    accelerator = kind.accelerator
    name, count = (accelerator.name, accelerator.count) if accelerator else ("", 0)
    return kind.architecture, name, count


def _words(kind: InstanceType) -> str:
    accelerator = kind.accelerator
    chips = f"{accelerator.count} x {accelerator.name}" if accelerator else "no accelerators"
    return f"{chips} ({kind.architecture})"


@HPE.warning(
    121,
    "SageMaker Developer Guide, Using the Amazon EBS CSI driver on SageMaker HyperPod EKS clusters "
    "(Considerations: all NVMe drives are one LVM volume group, mounted at /opt/sagemaker)",
    "2026-11-27",
    by_hand="findmnt /opt/sagemaker, on a node",
)
def volume_hidden_by_disks(group: Group) -> Breaches:
    """A second EBS volume is created only where the image does not mount local disks in its place."""
    if group.image_has_disks and group.settings.volume_gib:
        yield at("volume_gib").breach(
            f"HyperPod's image mounts the local disks of {group.settings.instance_type} at /opt/sagemaker: "
            f"the EBS volume of {group.settings.volume_gib} GiB per node has no place there and costs money. "
            "A group that was created with it keeps it until its nodes are replaced.",
            drop(),
        )


@HPE.error(123, "SageMaker API reference, AcceleratorPartitionConfig (Type)", "2026-11-28")
def mig_profile_counted(group: Group, settings: HyperPodEks, cluster: Cluster) -> Breaches:
    """Task governance counts the MIG profile."""
    if not (settings.task_governance and cluster.environment.teams and group.in_service and group.type):
        return
    key = group.settings.mig_key
    for profile in {one: 0 for layout in gpu_layouts(group.settings, group.type) for one in layout}:
        if key and profile in mig_profiles(group.type) and not is_partition(profile):
            yield at(key).breach(
                f"a compute quota has no partition `{profile}`: teams could not be given it.",
                anywhere({("orchestrator", "task_governance"): False}) | drop(),
            )
            return

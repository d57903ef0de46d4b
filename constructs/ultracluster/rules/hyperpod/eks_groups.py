"""Rules on: HyperPod on EKS. Node groups: labels, taints, further types."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType, instance_types, nearest_instance_types
from ultracluster.config import Environment
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL, ROLE_LABEL
from ultracluster.config.remedy import DROP, ask, beside, drop, write
from ultracluster.model.types import every_type_of, instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import continuous
from ultracluster.rules.hyperpod.groups import GROUP_API, hyperpod_groups, provisioning
from ultracluster.rules.sets import HPE

FLEXIBLE = f"{GROUP_API} (InstanceRequirements)"
_MOST_LABELS = 50
_OWN_LABELS = (GROUP_LABEL, ROLE_LABEL)
_HYPERPOD_ONLY = (
    "deep_health_checks",
    "efa_interface",
    "instance_types",
    "mig_profile",
    "min_count",
    "patching",
    "volume_gib",
)


def asked(environment: Environment) -> HyperPodEks:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, HyperPodEks)
    return environment.orchestrator


@HPE.rule(
    16,
    "error",
    "HyperPod has a group",
    source="SageMaker API reference, CreateCluster (InstanceGroups: at least one)",
)
def some_group(environment: Environment) -> Iterator[Breach]:
    if not environment.groups("compute"):
        yield Breach(
            ("node_groups",),
            "no group has the role `compute`, and system nodes are EKS's: HyperPod refuses a cluster without "
            "groups.",
            ask("decision", "a group with role: compute, or orchestrator.kind: eks"),
        )


@HPE.rule(
    17,
    "error",
    "What only HyperPod has is asked of HyperPod's groups",
    source="EKS API reference, CreateNodegroup: system nodes are a managed node group",
)
def system_is_eks(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("system").items():
        for key in _HYPERPOD_ONLY:
            if key in group.model_fields_set and getattr(group, key) not in (None, ()):
                yield Breach(
                    ("node_groups", name, key),
                    f"EKS manages system nodes, and `{key}` is HyperPod's: it would be ignored.",
                    drop(),
                )


@HPE.rule(
    30,
    "error",
    "A group's labels and ours are 50 at most",
    source="SageMaker API reference, ClusterKubernetesConfig (Labels)",
)
def room_for_labels(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        known = instance_type_of(environment, group)
        gpu = bool(known and known.accelerator and known.accelerator.manufacturer == "NVIDIA")
        ours = len(_OWN_LABELS) + gpu + bool(group.mig_profile)
        if len(group.labels) <= _MOST_LABELS < len(group.labels) + ours:
            yield Breach(
                ("node_groups", name, "labels"),
                f"{len(group.labels)} labels, and {ours} of this package that say what the node is; HyperPod "
                f"takes {_MOST_LABELS} together.",
                ask("decision", f"{_MOST_LABELS - ours} or fewer"),
            )


@HPE.rule(
    31,
    "error",
    "Groups with deep health checks have no taints",
    source="SageMaker Developer Guide, Getting started with Amazon EKS support in SageMaker HyperPod: "
    "deep health checks (sagemaker-hyperpod-eks-prerequisites)",
    date="2026-11-22",
)
def taints_and_checks(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.taints and group.deep_health_checks:
            yield Breach(
                ("node_groups", name, "taints"),
                "HyperPod takes no taints of your own on a group with deep health checks; it taints nodes "
                "itself until they have passed.",
                drop() | beside(deep_health_checks=DROP),
            )


@HPE.rule(
    36, "error", "Several types for one group go with continuous provisioning and no plan", source=FLEXIBLE
)
def flexible_when(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if not group.instance_types:
            continue
        if provisioning(environment) != "continuous":
            yield Breach(
                ("node_groups", name, "instance_types"),
                "HyperPod refuses several types with classic provisioning.",
                continuous(environment) | drop(),
            )
        if group.capacity.kind == "training-plan":
            yield Breach(
                ("node_groups", name, "instance_types"),
                f"a training plan holds instances of one type; others than {group.instance_type} would never "
                "come from it.",
                drop(),
            )


@HPE.rule(
    37,
    "warning",
    "The types of one group are of one kind",
    source=f"{FLEXIBLE}; SageMaker Developer Guide, Flexible instance groups, whose example mixes kinds, "
    "and Deep health checks",
    date="2026-11-22",
)
def flexible_kind(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        first, *others = every_type_of(environment, group)
        for index, known in enumerate(others):
            if first is None or known is None or _kind(known) == _kind(first):
                continue
            alike = [
                one.name
                for one in instance_types().values()
                if one.hyperpod and one.name not in (first.name, *group.instance_types)
                and _kind(one) == _kind(first)
            ]  # fmt: skip
            yield Breach(
                ("node_groups", name, "instance_types", index),
                f"{known.name} has {_words(known)}, {first.name} has {_words(first)}. HyperPod takes it, as "
                "for inference; a training job that gets both is as slow as the slower, or does not run.",
                (write(alike[0]) if alike else drop()).noting("or acknowledge that no job spans both"),
            )


@HPE.rule(38, "error", "Each type of a group stands once", source=FLEXIBLE)
def flexible_once(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        before = [group.instance_type]
        for index, one in enumerate(group.instance_types):
            if one in before:
                yield Breach(
                    ("node_groups", name, "instance_types", index),
                    f"{one} stands before already.",
                    drop(),
                )
            before.append(one)


@HPE.rule(
    39,
    "error",
    "The further types of a group are known",
    source="the catalogue: instances.json, general_instances.json",
)
def flexible_known(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        for index, known in enumerate(every_type_of(environment, group)[1:]):
            if known is None:
                near = [
                    one
                    for one in nearest_instance_types(group.instance_types[index])
                    if one not in (group.instance_type, *group.instance_types)
                    and instance_types()[one].hyperpod
                ]
                yield Breach(
                    ("node_groups", name, "instance_types", index),
                    f"there is no instance type {group.instance_types[index]}, as far as is known.",
                    (write(near[0]) if near else drop()).noting("or declare it under instance_types"),
                )


def _kind(known: InstanceType) -> tuple[str, str, int]:
    accelerator = known.accelerator
    name, count = (accelerator.name, accelerator.count) if accelerator else ("", 0)
    return known.architecture, name, count


def _words(known: InstanceType) -> str:
    accelerator = known.accelerator
    chips = f"{accelerator.count} x {accelerator.name}" if accelerator else "no accelerators"
    return f"{chips} ({known.architecture})"

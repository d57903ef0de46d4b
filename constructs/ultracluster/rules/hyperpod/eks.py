"""Rules on: HyperPod on EKS. The cluster: release, add-ons, autoscaling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ultracluster.catalog.hyperpod_eks import (
    health_agent_regions,
    hyperpod_addon_window,
    hyperpod_kubernetes_window,
)
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import DROP, anywhere, ask, drop, rename, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import continuous
from ultracluster.rules.hyperpod.eks_groups import asked
from ultracluster.rules.hyperpod.groups import hyperpod_groups
from ultracluster.rules.sets import HPE

IMAGES = "SageMaker Developer Guide, Amazon SageMaker HyperPod AMI support policy"
GOVERNANCE = "SageMaker Developer Guide, SageMaker HyperPod task governance"
KARPENTER = "SageMaker Developer Guide, Autoscaling on SageMaker HyperPod EKS; Create a NodeClass"
AGENT = "aws/sagemaker-hyperpod-cli 011ca92, charts/health-monitoring-agent/templates/_helpers.tpl"
_SCALING = ("orchestrator", "autoscaling")


@HPE.rule(
    1,
    "error",
    "The cluster's name is one that HyperPod takes",
    source="SageMaker API reference, CreateCluster (ClusterName)",
)
def name_for_both(environment: Environment) -> Iterator[Breach]:
    name = environment.cluster_name
    if name.endswith("-"):
        yield Breach(
            ("orchestrator", "cluster_name"),
            f"`{name}` names the EKS cluster and the HyperPod cluster, and HyperPod takes no `-` at the end.",
            write(name.rstrip("-") or environment.name),
        )


@HPE.rule(2, "error", "HyperPod has images for the Kubernetes release", source=IMAGES)
def release_of_images(environment: Environment) -> Iterator[Breach]:
    wanted, (first, last) = asked(environment).kubernetes_version, hyperpod_kubernetes_window()
    if not _minor(first) <= _minor(wanted) <= _minor(last):
        yield Breach(
            ("orchestrator", "kubernetes_version"),
            f"HyperPod's images are for {first} to {last}: nodes would not join a control plane of {wanted}.",
            write(last),
        )


@HPE.rule(
    3,
    "warning",
    "HyperPod's add-ons take the Kubernetes release",
    source="catalog/hyperpod_eks.json: a third party's record of the live API, 2026-10-04, which EKS settles",
    by_hand="aws eks describe-addon-versions --addon-name <name> "
    "--query 'addons[].addonVersions[].[addonVersion,compatibilities[].clusterVersion]'",
)
def release_of_addons(environment: Environment) -> Iterator[Breach]:
    wanted = asked(environment).kubernetes_version
    for name, path in _addons(environment).items():
        first, last = hyperpod_addon_window(name)
        early, late = _minor(wanted) < _minor(first), last and _minor(wanted) > _minor(last)
        if name in asked(environment).addon_versions or not (early or late):
            continue
        yield Breach(
            path,
            f"the pinned version of {name} is for Kubernetes {first} to {last or 'some later one'}, not for "
            f"{wanted}: EKS would refuse it.",
            anywhere({("orchestrator", "kubernetes_version"): first if early else last}).noting(
                "or addon_versions with one that fits"
            ),
        )


@HPE.rule(
    4,
    "error",
    "Task governance is the only Kueue",
    source=f"{GOVERNANCE}: the add-on installs Kueue, and one that is there is removed first",
    date="2026-11-22",
)
def one_kueue(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.task_governance and orchestrator.scheduler == "kueue":
        yield Breach(
            ("orchestrator", "task_governance"),
            "the add-on brings a Kueue of its own, and `scheduler` is kueue: their definitions clash.",
            anywhere({("orchestrator", "scheduler"): DROP}) | drop(),
        )


@HPE.rule(7, "warning", "Task governance is the only scheduler", source=GOVERNANCE, date="2026-11-22")
def one_scheduler(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.task_governance and orchestrator.scheduler in ("volcano", "kai"):
        yield Breach(
            ("orchestrator", "task_governance"),
            f"the add-on's Kueue admits jobs against quotas, and `scheduler` is {orchestrator.scheduler}, "
            "which places pods past them.",
            anywhere({("orchestrator", "scheduler"): DROP}).noting(
                "or acknowledge that no job names the other scheduler"
            ),
        )


@HPE.rule(
    5,
    "warning",
    "The Region has the health-monitoring agent",
    source=f"{AGENT}; aws/sagemaker-hyperpod-cli#359",
)
def agent_in_region(environment: Environment) -> Iterator[Breach]:
    if environment.region not in health_agent_regions():
        yield Breach(
            ("region",),
            f"no image of the agent is known in {environment.region}: it would be pulled from us-east-1, "
            "which a closed network does not reach, and without it no faulty node is found.",
            ask("decision", f"region: one of {', '.join(health_agent_regions())}"),
        )


@HPE.rule(
    6,
    "warning",
    "Versions are given for add-ons that are asked for",
    source="this configuration: orchestrator.addon_versions",
)
def version_of_nothing(environment: Environment) -> Iterator[Breach]:
    wanted = _addons(environment)
    for name in asked(environment).addon_versions:
        if name not in wanted:
            yield Breach(
                ("orchestrator", "addon_versions", name),
                f"{name} is not installed: nothing asks for it.",
                drop().noting(f"these are installed: {', '.join(wanted) or 'none'}"),
            )


@HPE.rule(60, "error", "Karpenter has what it stands on", source=KARPENTER)
def karpenter_needs(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.autoscaling is None:
        return
    if orchestrator.provisioning != "continuous":
        yield Breach(
            ("orchestrator", "provisioning"),
            "Karpenter adds nodes one by one, which classic provisioning cannot.",
            continuous(environment),
        )
    if orchestrator.node_recovery != "automatic":
        yield Breach(
            ("orchestrator", "node_recovery"),
            "HyperPod's Karpenter wants node recovery to be automatic.",
            write("automatic"),
        )


@HPE.rule(61, "error", "Karpenter has groups to scale", source=KARPENTER)
def karpenter_groups(environment: Environment) -> Iterator[Breach]:
    if asked(environment).autoscaling and not _scaled(environment):
        yield Breach(
            _SCALING,
            "every compute group has a `count`, and Karpenter starts from 0: what it manages it would first "
            "scale down to 0.",
            ask("decision", "count: 0 in the groups that it is to scale"),
        )


@HPE.rule(62, "error", "A group that Karpenter scales is one that it takes", source=KARPENTER)
def karpenter_takes(environment: Environment) -> Iterator[Breach]:
    for name in _scaled(environment):
        group = environment.node_groups[name]
        known = instance_type_of(environment, group)
        path: Path = ("node_groups", name)
        if group.capacity.kind == "training-plan":
            yield Breach(
                (*path, "capacity"),
                "Karpenter takes no group with a training plan, whose nodes are paid for whether they run or "
                "not.",
                write({"kind": "on-demand"}).noting("or count: the plan's nodes"),
            )
        if group.deep_health_checks:
            yield Breach(
                (*path, "deep_health_checks"),
                "Karpenter takes no group with deep health checks: pods would wait for hours, and it would "
                "start more and more nodes for them.",
                drop(),
            )
        if known and known.ultraserver:
            yield Breach(
                (*path, "instance_type"),
                f"{known.name} is a part of an UltraServer, which is started as a whole, not by Karpenter.",
                ask("decision", "a count, or another type"),
            )


@HPE.rule(
    63,
    "error",
    "Pools of Karpenter have names of their own",
    source="Kubernetes documentation, Object Names and IDs: lower case only",
)
def karpenter_names(environment: Environment) -> Iterator[Breach]:
    counts = Counter(name.lower() for name in _scaled(environment))
    for name in _scaled(environment):
        if counts[name.lower()] > 1:
            yield Breach(
                ("node_groups", name),
                f"another group is `{name.lower()}`, too, when written in lower case, as Kubernetes writes "
                "the names of pools.",
                rename(f"{name}-2"),
            )


@HPE.rule(
    64,
    "warning",
    "Memory for checkpoints is a share that the service takes",
    source="SageMaker Developer Guide, Managed tiered checkpointing (20 to 100; the API says 0 to 100)",
)
def tiered_share(environment: Environment) -> Iterator[Breach]:
    percent = asked(environment).tiered_checkpoints_percent
    if percent is not None and percent < 20:
        yield Breach(
            ("orchestrator", "tiered_checkpoints_percent"),
            f"{percent} %: the guide asks for 20 at least, the API for nothing (the two disagree).",
            write(20),
        )


@HPE.rule(
    65,
    "warning",
    "Nodes of an UltraServer share their NVLink",
    source="EKS User Guide, ml-eks-nvidia-ultraserver; NVIDIA/aicr#668",
)
def ultraserver_domain(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        known = instance_type_of(environment, group)
        if known and known.ultraserver:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"between nodes of an UltraServer {known.name} speaks NVLink only inside a ComputeDomain of "
                "NVIDIA's DRA driver, which is not installed here: without one it is EFA alone.",
                ask("action", "install dra-driver-nvidia-gpu, and acknowledge this"),
            )


def _addons(environment: Environment) -> dict[str, Path]:
    """Those that are installed, and what asks for each."""
    orchestrator = asked(environment)
    wanted: dict[str, Path] = {}
    for key, name, on in (
        ("task_governance", "amazon-sagemaker-hyperpod-taskgovernance", orchestrator.task_governance),
        ("training_operator", "amazon-sagemaker-hyperpod-training-operator", orchestrator.training_operator),
        ("observability", "amazon-sagemaker-hyperpod-observability", orchestrator.observability),
        ("inference", "amazon-sagemaker-hyperpod-inference", orchestrator.inference),
    ):
        if on:
            wanted[name] = ("orchestrator", key)
            if key in ("training_operator", "inference"):
                wanted["cert-manager"] = ("orchestrator", key)
    return wanted


def _scaled(environment: Environment) -> list[str]:
    if asked(environment).autoscaling is None:
        return []
    return [name for name, group in environment.groups("compute").items() if group.count == 0]


def _minor(release: str) -> int:
    return int(release.partition(".")[2])

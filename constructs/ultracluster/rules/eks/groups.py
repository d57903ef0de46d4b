"""Rules on: Kubernetes on EKS. Node groups: system nodes, labels, taints, images, devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.catalog.eks import ami_type, node_group_limits
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.remedy import Remedy, anywhere, ask, beside, drop, inside, rename, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

EKS_ALONE = frozenset[OrchestratorKind]({"eks"})

NAMES = "Kubernetes documentation, Labels and Selectors, Taints and Tolerations"
NODE_GROUP = "EKS API reference, CreateNodegroup"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_MOST = 50
_OWN_LABELS = ("ultracluster",)
_RESERVED = ("eks.amazonaws.com", "sagemaker.amazonaws.com")
_KUBELETS = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Kubernetes' own prefixes in which, and below which, a kubelet takes labels for its node."""
_SET_ANYWAY = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
"""Labels that it takes, too, and that it or the cloud provider sets to what the node is."""


def settings(environment: Environment) -> Eks | HyperPodEks:
    """The orchestrator of an environment that these rules are about."""
    assert isinstance(environment.orchestrator, Eks | HyperPodEks)
    return environment.orchestrator


def launched_by_karpenter(environment: Environment) -> tuple[str, ...]:
    """Names of the groups that are left to Karpenter, whether or not they exist."""
    orchestrator = settings(environment)
    karpenter = orchestrator.karpenter if isinstance(orchestrator, Eks) else None
    return karpenter.groups if karpenter else ()


@EKS.rule(
    21,
    "error",
    "There is a group of system nodes",
    source="EKS User Guide, Manage CoreDNS for DNS in Amazon EKS clusters; awslabs/ml-container-creator#297",
)
def system_group(environment: Environment) -> Iterator[Breach]:
    if not any(group.count for group in environment.groups("system").values()):
        yield Breach(
            ("node_groups",),
            "no group of role `system` has a node: CoreDNS, storage drivers and operators have nowhere to "
            "run, because nodes with accelerators are kept for jobs, and the deployment waits in vain.",
            _system_nodes(environment),
        )


@EKS.rule(
    22,
    "warning",
    "System nodes are two or more, without accelerators, and stay",
    source="EKS Best Practices Guide, Reliability: applications",
)
def modest_system(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("system").items():
        known = instance_type_of(environment, group)
        if group.count == 1:
            yield Breach(
                ("node_groups", name, "count"),
                "with one node DNS and operators are gone whenever it is replaced.",
                write(2),
            )
        if known and known.accelerator:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} has {known.accelerator.count} x {known.accelerator.name}, which DNS and "
                "operators do not use.",
                write("m5.2xlarge"),
            )
        if group.capacity.kind != "on-demand":
            yield Breach(
                ("node_groups", name, "capacity"),
                f"nodes from {group.capacity.kind} end when AWS says so, and DNS and operators with them.",
                write({"kind": "on-demand"}),
            )


@EKS.rule(23, "error", "Labels have the form of Kubernetes", source=NAMES)
def label_form(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        for key, value in group.labels.items():
            path: Path = ("node_groups", name, "labels", key)
            if why := _key_fault(key):
                yield Breach(path, f"the key `{key}` {why}.", rename(_mended_key(key)))
            elif value and not _NAME.fullmatch(value):
                yield Breach(
                    path,
                    f"the value `{value}` is not at most 63 letters, digits, `-`, `_` and `.` that begin and "
                    "end with a letter or digit.",
                    write(_mended(value)) if _mended(value) else drop(),
                )


@EKS.rule(24, "error", "Taints have the form of Kubernetes, and each stands once", source=NAMES)
def taint_form(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        counts = Counter((taint.key, taint.effect) for taint in group.taints)
        for index, taint in enumerate(group.taints):
            path: Path = ("node_groups", name, "taints", index)
            if why := _key_fault(taint.key):
                yield Breach((*path, "key"), f"the key `{taint.key}` {why}.", write(_mended_key(taint.key)))
            elif taint.value and not _NAME.fullmatch(taint.value):
                yield Breach(
                    (*path, "value"),
                    f"the value `{taint.value}` is not at most 63 letters, digits, `-`, `_` and `.` that "
                    "begin and end with a letter or digit.",
                    write(_mended(taint.value)) if _mended(taint.value) else drop(),
                )
            elif counts[taint.key, taint.effect] > 1:
                yield Breach(
                    path,
                    f"`{taint.key}` with {taint.effect} stands {counts[taint.key, taint.effect]} times; "
                    "a node has one taint for a key and an effect.",
                    drop(),
                )


@EKS.rule(
    25,
    "error",
    "A group has at most 50 labels and 50 taints",
    source=f"{NODE_GROUP} (labels, taints); SageMaker API reference, ClusterKubernetesConfig",
)
def not_too_many(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        for key, count in (("labels", len(group.labels)), ("taints", len(group.taints))):
            if count > _MOST:
                yield Breach(
                    ("node_groups", name, key),
                    f"{count} {key}; a group may have {_MOST}.",
                    ask("decision", f"{_MOST} or fewer"),
                )


@EKS.rule(
    26,
    "error",
    "No label takes a name that Kubernetes, AWS or this package sets itself",
    source="Kubernetes documentation, kubelet (--node-labels: allowed prefixes and labels), Well-Known "
    "Labels; EKS User Guide, managed node groups",
    date="2026-11-22",
)
def foreign_labels(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        for key in group.labels:
            prefix, _, last = key.rpartition("/")
            if why := _foreign(prefix, key):
                yield Breach(("node_groups", name, "labels", key), f"{why}.", rename(f"example.com/{last}"))


def _foreign(prefix: str, key: str) -> str:
    """Why a label is not for us to set; empty where it is."""
    if key in _SET_ANYWAY:
        return f"`{key}` says what the node is, and is set to that: another value would be a lie"
    if owner := next((one for one in (*_RESERVED, *_OWN_LABELS) if _below(prefix, one)), ""):
        return f"labels below {owner}/ say what a node is, and whoever owns them sets them"
    kubernetes = next((one for one in ("kubernetes.io", "k8s.io") if _below(prefix, one)), "")
    if kubernetes and not any(_below(prefix, one) for one in _KUBELETS):
        return (
            f"the kubelet refuses labels below {kubernetes}/ but those of {' and '.join(_KUBELETS)}: the "
            "node would not start"
        )
    return ""


def _below(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")


@EKS.rule(
    27,
    "error",
    "EKS has an image for the instance type",
    source="EKS API reference, Nodegroup (amiType): no Neuron image for Arm",
    kinds=EKS_ALONE,
)
def image_for_type(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if known and not group.image and ami_type(known) is None:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"EKS has no Amazon Linux 2023 image with the driver of {known.name} ({known.architecture}).",
                ask("fact", "image: ami-... of your own, or a type for which EKS has one"),
            )


@EKS.rule(
    28,
    "error",
    "Nodes on an image of one's own know the network of services",
    source="awslabs/amazon-eks-ami, nodeadm: NodeConfig (cluster.cidr)",
    kinds=EKS_ALONE,
)
def image_needs_services(environment: Environment) -> Iterator[Breach]:
    network = settings(environment).service_cidr
    for name, group in environment.node_groups.items():
        if group.image and name not in launched_by_karpenter(environment) and not network:
            yield Breach(
                ("node_groups", name, "image"),
                f"EKS tells nodes on {group.image} nothing: the network of services must be known to join "
                "them, and without orchestrator.service_cidr EKS chooses it.",
                anywhere({("orchestrator", "service_cidr"): free_service_network(environment)}),
            )


@EKS.rule(
    29,
    "warning",
    "The cluster is within EKS's default quotas",
    source="Amazon EKS service quotas: managed node groups per cluster, nodes per managed node group",
    by_hand="aws service-quotas list-service-quotas --service-code eks --query 'Quotas[].[QuotaName,Value]'",
    kinds=EKS_ALONE,
)
def within_quotas(environment: Environment) -> Iterator[Breach]:
    groups, nodes = node_group_limits()
    others = launched_by_karpenter(environment)
    managed = {name: group for name, group in environment.node_groups.items() if name not in others}
    if len(managed) > groups:
        yield Breach(
            ("node_groups",),
            f"{len(managed)} groups; by default a cluster may have {groups}.",
            ask("decision", f"{groups} or fewer, or a raised quota"),
        )
    for name, group in managed.items():
        if group.greatest > nodes:
            yield Breach(
                ("node_groups", name, "max_count" if group.max_count else "count"),
                f"{group.greatest} nodes; by default a managed node group may have {nodes}.",
                (
                    write(nodes) & beside(count=min(group.count, nodes)) if group.max_count else write(nodes)
                ).noting(f"the others in {-(-group.greatest // nodes) - 1} more groups; or a raised quota"),
            )


@EKS.rule(
    33,
    "error",
    "The GPU operator has GPUs to operate",
    source="NVIDIA/gpu-operator; Neuron documentation, Neuron Helm chart",
)
def operator_without_gpus(environment: Environment) -> Iterator[Breach]:
    if settings(environment).gpu_plugin == "gpu-operator" and not _makers(environment) & {"NVIDIA", None}:
        yield Breach(
            ("orchestrator", "gpu_plugin"),
            "no compute group has NVIDIA GPUs; Neuron devices get their own plugin by themselves.",
            write("device-plugin"),
        )


@EKS.rule(
    34,
    "warning",
    "Pods can ask for the GPUs that there are",
    source="Kubernetes documentation, Device Plugins",
)
def no_plugin(environment: Environment) -> Iterator[Breach]:
    if settings(environment).gpu_plugin == "none" and "NVIDIA" in _makers(environment):
        yield Breach(
            ("orchestrator", "gpu_plugin"),
            "without a device plugin no pod gets a GPU, unless you install one yourself.",
            write("device-plugin"),
        )


@EKS.rule(
    35,
    "warning",
    "Nodes are set up for Lustre over EFA",
    source="EKS User Guide, FSx for Lustre performance on nodes with EFA (fsx-csi-tuning-efa)",
)
def lustre_over_tcp(environment: Environment) -> Iterator[Breach]:
    orchestrator = settings(environment)
    if orchestrator.lifecycle == "none" and getattr(environment.storage.lustre, "efa", False):
        yield Breach(
            ("orchestrator", "lifecycle"),
            "the file system speaks EFA, and no script sets nodes up for it before they join: Lustre would "
            "use TCP without a word.",
            drop().noting("the default sets nodes up"),
        )


def _makers(environment: Environment) -> set[str | None]:
    """Makers of the accelerators; None stands for a type that is not known."""
    types = [instance_type_of(environment, group) for group in environment.groups("compute").values()]
    return {known.accelerator.manufacturer if known.accelerator else "" for known in types if known} | (
        {None} if None in types else set()
    )


def _key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return "has a prefix that is not a DNS name in lower case"
    if not _NAME.fullmatch(name):
        return (
            "has a name that is not at most 63 letters, digits, `-`, `_` and `.` that begin and end with a "
            "letter or digit"
        )
    return ""


def _mended_key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    clean = re.sub(r"[^a-z0-9.-]", "-", prefix.lower()).strip("-.")[:253]
    return f"{clean}{slash if clean else ''}{_mended(name) or 'name'}"


def _mended(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:63].strip("-._")


def free_service_network(environment: Environment) -> str:
    """A network for services that is not the VPC's."""
    network = environment.network
    vpc = IPv4Network(network.vpc.cidr if network.vpc else network.cidr)
    usual = ("172.20.0.0/16", "10.100.0.0/16", "192.168.128.0/17")
    return next(one for one in usual if not IPv4Network(one).overlaps(vpc))


def _system_nodes(environment: Environment) -> Remedy:
    for name in environment.groups("system"):
        return anywhere({("node_groups", name, "count"): 2})
    name = next(one for one in ("system", "addons", "system-nodes") if one not in environment.node_groups)
    return inside(**{name: {"role": "system", "instance_type": "m5.2xlarge", "count": 2}})

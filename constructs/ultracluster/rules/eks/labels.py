"""Rules on: Kubernetes on EKS. Labels and taints of node groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ultracluster.config.findings import Path
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.model import Group
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

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


@EKS.rule(23, "error", "Labels have the form of Kubernetes", source=NAMES)
def label_form(group: Group) -> Iterator[Breach]:
    for key, value in group.settings.labels.items():
        path: Path = ("labels", key)
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
def taint_form(group: Group) -> Iterator[Breach]:
    taints = group.settings.taints
    counts = Counter((taint.key, taint.effect) for taint in taints)
    for index, taint in enumerate(taints):
        path: Path = ("taints", index)
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
def not_too_many(group: Group) -> Iterator[Breach]:
    for key, count in (("labels", len(group.settings.labels)), ("taints", len(group.settings.taints))):
        if count > _MOST:
            yield Breach(
                (key,),
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
def foreign_labels(group: Group) -> Iterator[Breach]:
    for key in group.settings.labels:
        prefix, _, last = key.rpartition("/")
        if why := _foreign(prefix, key):
            yield Breach(("labels", key), f"{why}.", rename(f"example.com/{last}"))


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

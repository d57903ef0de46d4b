"""Rules on: Kubernetes on EKS. Labels and taints of node groups."""

from __future__ import annotations

import re
from collections import Counter

from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.model import Group
from ultracluster.rules.engine import Breach, Breaches, at
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
"""Labels that it takes as well, but sets itself, or the cloud provider does, to what the node is."""


@EKS.error(23, NAMES)
def label_form(group: Group) -> Breaches:
    """Labels follow the rules of Kubernetes."""
    for key, value in group.settings.labels.items():
        path: YamlPath = ("labels", key)
        if why := _key_fault(key):
            yield Breach(path, f"the key `{key}` {why}.", rename(_fixed_key(key)))
        elif value and not _NAME.fullmatch(value):
            yield at(*path).breach(
                f"the value `{value}` must be at most 63 letters, digits, `-`, `_` and `.`, with a letter or "
                "digit first and last.",
                write(_fixed(value)) if _fixed(value) else drop(),
            )


@EKS.error(24, NAMES)
def taint_form(group: Group) -> Breaches:
    """Taints follow the rules of Kubernetes, and none is repeated."""
    taints = group.settings.taints
    counts = Counter((taint.key, taint.effect) for taint in taints)
    for index, taint in enumerate(taints):
        path: YamlPath = ("taints", index)
        if why := _key_fault(taint.key):
            yield at(*path, "key").breach(f"the key `{taint.key}` {why}.", write(_fixed_key(taint.key)))
        elif taint.value and not _NAME.fullmatch(taint.value):
            yield at(*path, "value").breach(
                f"the value `{taint.value}` must be at most 63 letters, digits, `-`, `_` and `.`, with a "
                "letter or digit first and last.",
                write(_fixed(taint.value)) if _fixed(taint.value) else drop(),
            )
        elif counts[taint.key, taint.effect] > 1:
            yield at(*path).breach(
                f"`{taint.key}` with {taint.effect} is given {counts[taint.key, taint.effect]} times; a node "
                "has one taint for each key and effect.",
                drop(),
            )


@EKS.error(25, f"{NODE_GROUP} (labels, taints); SageMaker API reference, ClusterKubernetesConfig")
def label_and_taint_count(group: Group) -> Breaches:
    """A group has at most 50 labels and 50 taints."""
    for key, count in (("labels", len(group.settings.labels)), ("taints", len(group.settings.taints))):
        if count > _MOST:
            yield at(key).breach(
                f"there are {count} {key}; a group may have {_MOST}.",
                ask("decision", f"use {_MOST} or fewer"),
            )


@EKS.error(
    26,
    "Kubernetes documentation, kubelet (--node-labels: allowed prefixes and labels), Well-Known "
    "Labels; EKS User Guide, managed node groups",
    "2026-11-22",
)
def reserved_labels(group: Group) -> Breaches:
    """No label uses a name that Kubernetes, AWS or this package sets itself."""
    for key in group.settings.labels:
        prefix, _, last = key.rpartition("/")
        if why := _foreign(prefix, key):
            yield at("labels", key).breach(f"{why}.", rename(f"example.com/{last}"))


def _foreign(prefix: str, key: str) -> str:
    """Why a label must not be set; empty if it may."""
    if key in _SET_ANYWAY:
        return f"Kubernetes sets `{key}` itself to what the node is: another value would be wrong"
    if owner := next((domain for domain in (*_RESERVED, *_OWN_LABELS) if _below(prefix, domain)), ""):
        return f"labels below {owner}/ are reserved: their owner sets them to what the node is"
    kubernetes = next((domain for domain in ("kubernetes.io", "k8s.io") if _below(prefix, domain)), "")
    if kubernetes and not any(_below(prefix, domain) for domain in _KUBELETS):
        return (
            f"the kubelet refuses labels below {kubernetes}/ except those of {' and '.join(_KUBELETS)}: the "
            "node would not start"
        )
    return ""


def _below(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")


def _key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return "must have a DNS name in lower case as its prefix"
    if not _NAME.fullmatch(name):
        return (
            "must have a name of at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit first "
            "and last"
        )
    return ""


def _fixed_key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    clean = re.sub(r"[^a-z0-9.-]", "-", prefix.lower()).strip("-.")[:253]
    return f"{clean}{slash if clean else ''}{_fixed(name) or 'name'}"


def _fixed(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:63].strip("-._")

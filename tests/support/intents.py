"""What people want of a cluster, put into each orchestrator's words."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ruamel.yaml import YAML

from ultracluster.catalog import instance_type, is_local_zone, regions
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.pcs import pcs_image_parameter
from ultracluster.config import Finding, Loaded, parse
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM, OrchestratorKind
from ultracluster.config.source import Source
from ultracluster.rules import check
from ultracluster.software import newest_release

KINDS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)
LUSTRE = {
    "deployment": "persistent-2-ssd",
    "capacity_gib": 19_200,
    "throughput_mbps_per_tib": 250,
    "efa": True,
}


@dataclass(frozen=True)
class Intent:
    """One row of the table."""

    id: str
    title: str
    data: Mapping[str, Any]

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True)
class Cell:
    """An intent under one orchestrator."""

    intent: Intent
    kind: OrchestratorKind
    loaded: Loaded
    findings: tuple[Finding, ...]

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Why it cannot be; empty where it can."""
        return tuple(finding for finding in self.findings if finding.blocks)

    def __str__(self) -> str:
        return f"{self.intent}-{self.kind}"


def intents() -> tuple[Intent, ...]:
    rows: Any = YAML(typ="safe").load(Path(__file__).with_name("intents.yaml"))
    return tuple(Intent(row["id"], row["title"], row) for row in rows)


def cells() -> tuple[Cell, ...]:
    """Every intent under every orchestrator."""
    return tuple(cell(intent, kind) for intent in intents() for kind in KINDS)


def cell(intent: Intent, kind: OrchestratorKind) -> Cell:
    loaded = parse(Source(f"{intent.id}.yaml", data=environment(intent, kind)))
    return Cell(intent, kind, loaded, tuple(check(loaded)))


def environment(intent: Intent, kind: OrchestratorKind) -> dict[str, Any]:
    """The environment file that somebody with this intent would write."""
    wanted = copy.deepcopy(dict(intent.data))
    lustre = wanted.get("lustre", LUSTRE)
    data: dict[str, Any] = {
        "name": f"{intent.id}-{kind}"[:30].rstrip("-"),
        "account": "111122223333",
        "region": wanted["region"],
        "network": {"zone_id": wanted["zone_id"], "egress": wanted.get("egress", "nat")},
        "storage": {key: wanted[key] for key in ("openzfs",) if key in wanted},
        "orchestrator": {"kind": kind},
        "node_groups": {**_companions(wanted["nodes"], kind), **wanted["nodes"]},
        "software": {"release": newest_release("eks-al2023" if kind == "eks" else kind).release},
    }
    if parent := wanted.get("parent_zone"):  # a Local Zone is not sure to have these
        data["network"]["further_zones"] = {parent: {"cidr": "10.0.128.0/20"}}
        for group in data["node_groups"].values():
            if group["role"] != "compute":
                group["zone_id"] = parent
    if lustre:
        data["storage"]["lustre"] = lustre
    if kind in KUBERNETES:
        data["orchestrator"] |= _control_plane(wanted)
        if any(group.get("mig_profile") for group in wanted["nodes"].values()):
            data["orchestrator"]["gpu_plugin"] = "gpu-operator"
    for name in wanted["nodes"]:
        if kind in SLURM:
            data["node_groups"][name]["partition"] = name
    if kind == "pcs":
        for group in data["node_groups"].values():
            group["image"] = pcs_image_parameter(_architecture(group["instance_type"]))
    if kind in KUBERNETES:
        data["orchestrator"]["node_image_release"] = {"hyperpod-eks": "1.35.6-20261012"}.get(
            kind, "1.36.1-20261012"
        )
    if data["network"]["egress"] == "closed":
        data["software"]["mirror"] = "s3://example-software-mirror/ultracluster"
    return data


def _architecture(type_name: str) -> str:
    known = instance_type(type_name)
    return known.architecture if known else "x86_64"


def _control_plane(wanted: Mapping[str, Any]) -> dict[str, Any]:
    home = regions()[wanted["region"]]
    own = wanted["zone_id"]
    taken = (own, wanted.get("parent_zone"), *refused_zones())
    settings: dict[str, Any] = {
        "second_zone_id": next(
            zone for zone in home.zone_ids if zone not in taken and not is_local_zone(zone)
        ),
        "admins": ["arn:aws:iam::111122223333:role/platform-engineers"],
    }
    if wanted.get("egress") == "closed":
        settings["chart_repository"] = f"oci://111122223333.dkr.ecr.{wanted['region']}.amazonaws.com/charts"
    return settings


def _companions(nodes: Mapping[str, Any], kind: OrchestratorKind) -> dict[str, Any]:
    """Groups that train nothing and without which there is no cluster."""
    known = [instance_type(group["instance_type"]) for group in nodes.values()]
    arm = any(one is not None and one.architecture == "arm64" for one in known)
    family = "m7g" if arm else "m5"
    groups: dict[str, Any] = {}
    if kind in ("hyperpod-slurm", "parallelcluster"):
        groups["controller"] = {"role": "controller", "instance_type": f"{family}.4xlarge", "count": 1}
    if kind in SLURM:
        groups["login"] = {"role": "login", "instance_type": f"{family}.xlarge", "count": 1}
    if kind in KUBERNETES:
        groups["system"] = {"role": "system", "instance_type": f"{family}.xlarge", "count": 2}
    for group in nodes.values():
        group["role"] = "compute"
    return groups


__all__ = ["HYPERPOD", "KINDS", "Cell", "Intent", "cell", "cells", "environment", "intents"]

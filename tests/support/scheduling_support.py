"""Environments with a scheduler and two teams, and what the scheduler is given."""

from __future__ import annotations

from typing import Any

from kubernetes_support import MEMBER, environment
from ruamel.yaml import YAML

from ultracluster.config import Environment
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

TEAMS: dict[str, Any] = {
    "research": {"quota": 32, "limit": {"train": 48}, "members": [MEMBER]},
    "product": {"quota": {"train": 16}, "members": [MEMBER]},
}
SCHEDULERS = ["kueue", "volcano", "kai"]
GB200 = {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 2}
PLAIN = {"role": "compute", "instance_type": "g5.xlarge", "count": 2}


def plain(text: str) -> Any:
    return YAML(typ="safe").load(text)


def made(scheduler: str, **changes: Any) -> Environment:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return environment({"orchestrator.scheduler": scheduler, "teams": TEAMS, **keys})


def of_kind(env: Environment, kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in scheduling(resolve(env)).objects if one["kind"] == kind}


# --- quotas ----------------------------------------------------------------------------------------------


def nominal(queue: dict[str, Any], field: str = "nominalQuota") -> dict[str, int]:
    return {
        flavor["name"]: resource[field]
        for group in queue["spec"].get("resourceGroups", [])
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if field in resource
    }

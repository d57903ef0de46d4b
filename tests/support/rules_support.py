"""Break one thing of a valid environment and see which rules speak."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from project import ROOT

from ultracluster.config import Finding, Loaded, load, parse
from ultracluster.config.source import Source, read
from ultracluster.rules import all_rules, check

all_rules()  # fills the sets in `rules.sets`, of which tests run one

GB300 = {
    "vcpu": 144,
    "memory_gib": 960,
    "architecture": "arm64",
    "accelerator": "NVIDIA GB300",
    "accelerators": 4,
    "accelerator_memory_gib": 1116,
    "network_gbps": 1600,
    "network_cards": 17,
    "efa_interfaces": 8,
    "addresses": 17,
    "source": "announcement of the type",
}
"""A declaration of a type that the catalogue does not have."""
OPENZFS = {"deployment": "single-az-ha-2", "capacity_gib": 256, "throughput_mbps": 160}
EXISTING_DATABASE = {
    "kind": "existing",
    "endpoint": "accounting.example.internal",
    "secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm",
    "security_group_id": "sg-0123456789abcdef0",
}


def environment_data(name: str = "dev") -> dict[str, Any]:
    """The data of a shipped environment, to be changed at will."""
    return copy.deepcopy(_shipped(name))


@cache
def _shipped(name: str) -> dict[str, Any]:
    return read(ROOT / "environments" / f"{name}.yaml").data


def changed(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`data` with values set by path: `{"storage.lustre.efa": True, "node_groups.gpu.count": 4}`.

    `...` removes a key; keys that hold dots (a folder of the file system is fine) are not supported.
    """
    data = copy.deepcopy(data)
    for path, value in changes.items():
        *parents, last = path.split(".")
        target = data
        for part in parents:
            target = target.setdefault(part, {})
        if value is ...:
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(value)
    return data


def loaded(data: dict[str, Any]) -> Loaded:
    return parse(Source("test.yaml", data=data))


def findings(changes: dict[str, Any], *, base: str = "dev") -> list[Finding]:
    """Findings of every rule for a shipped environment with `changes`.

    The shape must be valid: an impossible shape raises, because a rule cannot be tested with it.
    """
    return check(loaded(changed(environment_data(base), changes)))


def codes(changes: dict[str, Any], *, base: str = "dev") -> set[str]:
    return {finding.code for finding in findings(changes, base=base)}


__all__ = [
    "EXISTING_DATABASE",
    "GB300",
    "OPENZFS",
    "changed",
    "codes",
    "environment_data",
    "findings",
    "load",
    "loaded",
]

"""How the rules on announced types, UltraServers and Neuron's scheduler are broken and mended."""

from __future__ import annotations

from typing import Any

from rules_table import Case

TRN = "node_groups.trn2"
NAME = "trn3.48xlarge"
AT = f'instance_types."{NAME}"'
CHART = "orchestrator.chart_values"
TAG = f"{CHART}.neuron-helm-chart.scheduler.customScheduler.image.tag"


def declared(**more: Any) -> dict[str, Any]:
    row = {
        "vcpu": 192, "memory_gib": 2048, "accelerator": "Trainium3", "accelerators": 16,
        "network_gbps": 3200, "network_cards": 16, "efa_interfaces": 16, "addresses": 16,
        "source": "announcement of the type",
    }  # fmt: skip
    return {"instance_types": {NAME: {**row, **more}}, f"{TRN}.instance_type": NAME}


GROUPS = [
    Case(
        "GRP051",
        declared(network_like="trn2u.84xlarge"),
        f"{AT}.network_like",
        "no instance type `trn2u.84xlarge`",
        "trn2u.48xlarge",
        declared(network_like="trn2u.48xlarge"),
        "eks-trn2",
    ),
]

EKS = [
]  # fmt: skip

__all__ = ["EKS", "GROUPS"]

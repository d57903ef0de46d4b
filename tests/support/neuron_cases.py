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


def scheduler_of_chart(**scheduler: Any) -> dict[str, Any]:
    return {"orchestrator.neuron_scheduler": True, CHART: {"neuron-helm-chart": {"scheduler": scheduler}}}


GROUPS = [
    Case(
        "GRP050",
        declared(announced=True, network_like="trn2u.48xlarge"),
        f"{TRN}.instance_type",
        "AWS's API does not have this name yet",
        "instance_type: trn2u.48xlarge",
        {f"{TRN}.instance_type": "trn2.48xlarge"},
        "eks-trn2",
    ),
    Case(
        "GRP051",
        declared(ultraservers=["trn3-gen1", "trn3-gen3"]),
        f"{AT}.ultraservers[1]",
        "no UltraServer `trn3-gen3`",
        "trn3-gen2",
        declared(ultraservers=["trn3-gen1", "trn3-gen2"]),
        "eks-trn2",
    ),
    Case(
        "GRP051",
        declared(network_like="trn2u.84xlarge"),
        f"{AT}.network_like",
        "no instance type `trn2u.84xlarge`",
        "trn2u.48xlarge",
        declared(network_like="trn2u.48xlarge"),
        "eks-trn2",
    ),
    Case(
        "GRP052",
        {f"{TRN}.instance_type": "trn2u.48xlarge", f"{TRN}.count": 6},
        f"{TRN}.count",
        "no whole UltraServers of 4 trn2u.48xlarge",
        "count: 8",
        {f"{TRN}.count": 4},
        "eks-trn2",
    ),
    Case(
        "GRP053",
        declared(network_like="trn1.32xlarge"),
        f"{AT}.efa_interfaces",
        "only 8 network cards of trn1.32xlarge take one",
        "efa_interfaces: 8",
        declared(network_like="trn2.48xlarge"),
        "eks-trn2",
    ),
]

EKS = [
    Case(
        "EKS100",
        {"orchestrator.neuron_scheduler": True},
        "orchestrator.neuron_scheduler",
        "no compute group has Trainium",
        "remove neuron_scheduler",
        {"orchestrator.neuron_scheduler": False},
        "eks-p5en",
    ),
    Case(
        "EKS101",
        {"orchestrator.neuron_scheduler": True, "orchestrator.scheduler": "kai"},
        "orchestrator.neuron_scheduler",
        "pods of kai name its own scheduler",
        "scheduler: kueue",
        {"orchestrator.scheduler": "none"},
        "eks-trn2",
    ),
    Case(
        "EKS102",
        scheduler_of_chart(customScheduler={"image": {"tag": "v1.31.12-eks-1-31-30"}}),
        TAG,
        "with a control plane of 1.36",
        "v1.36.",
        scheduler_of_chart(customScheduler={"image": {"tag": "v1.35.6-eks-1-35-13"}}),
        "eks-trn2",
    ),
    Case(
        "EKS103",
        {
            f"{TRN}.instance_type": "trn2u.48xlarge",
            CHART: {"neuron-helm-chart": {"devicePlugin": {"image": {"tag": "2.22.4.0"}}}},
        },
        f"{TRN}.instance_type",
        "get their labels from 2.30.0.0 on",
        "2.32.0.0",
        {CHART: {"neuron-helm-chart": {"devicePlugin": {"image": {"tag": "2.30.0.0"}}}}},
        "eks-trn2",
    ),
    Case(
        "EKS104",
        {"orchestrator.neuron_scheduler": True, "orchestrator.kubernetes_version": "1.37"},
        "orchestrator.neuron_scheduler",
        "no image of the second scheduler is known",
        "chart_values",
        {"orchestrator.kubernetes_version": "1.36"},
        "eks-trn2",
    ),
]  # fmt: skip

__all__ = ["EKS", "GROUPS"]

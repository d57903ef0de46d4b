"""What a node of EKS is handed, and what is done about a faulty one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aws_cdk import aws_eks as eks

from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.config.kubernetes import NodeRepair
from ultracluster.config.nodes import Taint

_BOUNDARY = "==ULTRACLUSTER=="


def repair_config(repair: NodeRepair) -> eks.CfnNodegroup.NodeRepairConfigProperty:
    """What EKS does about faulty nodes."""
    if not repair.enabled:
        return eks.CfnNodegroup.NodeRepairConfigProperty(enabled=False)
    actions = {"replace": "Replace", "reboot": "Reboot", "none": "NoAction"}
    return eks.CfnNodegroup.NodeRepairConfigProperty(
        enabled=True,
        max_parallel_nodes_repaired_percentage=repair.max_parallel_percent,
        max_unhealthy_node_threshold_percentage=repair.max_unhealthy_percent,
        node_repair_config_overrides=[
            eks.CfnNodegroup.NodeRepairConfigOverridesProperty(
                node_monitoring_condition=override.condition,
                node_unhealthy_reason=override.reason,
                repair_action=actions[override.action],
                min_repair_wait_time_mins=override.after_minutes,
            )
            for override in repair.overrides
        ]
        or None,
    )


def node_config(cluster: IEksControlPlane, labels: Mapping[str, str], taints: Sequence[Taint]) -> str:
    """What nodeadm reads (awslabs/amazon-eks-ami, nodeadm, NodeConfig v1alpha1); JSON is YAML."""
    flags = ["--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items())]
    if taints:
        flags.append("--register-with-taints=" + ",".join(f"{t.key}={t.value}:{t.effect}" for t in taints))
    spec = {
        "cluster": {
            "name": cluster.cluster_name,
            "apiServerEndpoint": cluster.cluster_endpoint,
            "certificateAuthority": cluster.cluster_certificate_authority_data,
            "cidr": cluster.service_cidr,
        },
        "kubelet": {"flags": flags},
    }
    return json.dumps({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})


def user_data(script: str | None, node_config: str | None) -> str | None:
    """A MIME document, to which EKS adds its own part on its own images."""
    parts = [
        (kind, text)
        for kind, text in (("text/x-shellscript", script), ("application/node.eks.aws", node_config))
        if text
    ]
    if not parts:
        return None
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"', ""]
    for kind, text in parts:
        lines += [f"--{_BOUNDARY}", f'Content-Type: {kind}; charset="us-ascii"', "", text]
    return "\n".join([*lines, f"--{_BOUNDARY}--", ""])

"""Describe what nodes and the jobs on them read of an instance type, in `cluster.json`."""

from __future__ import annotations

from ultracluster.catalog.instance_facts import InstanceType


def type_facts(kind: InstanceType) -> dict[str, object]:
    """Facts of a type for node scripts and acceptance jobs; one that is not known is left out, because
    unknown is not no."""
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    facts: dict[str, object] = {
        "accelerators": kind.accelerator.count if kind.accelerator else 0,
        "efa_interfaces": kind.least_efa_interfaces,
        "local_nvme_disks": kind.local_nvme_disks,
        # of a type that is no more than a name, not even that is known
        "accelerator": {"NVIDIA": "nvidia", "AWS": "neuron"}.get(maker, "none" if kind.vcpu else None),
        # by which health checks know the generation
        "accelerator_name": kind.accelerator.name if kind.accelerator else None,
        # several are right where AWS describes layouts instead of a maximum
        "efa_layouts": list(kind.recommended_efa_interfaces) or None,
        "gpu_direct_rdma": kind.gpu_direct_rdma,
        "imex": kind.imex,
        "lustre_efa_interfaces": kind.lustre_efa_interfaces,
        "nvswitch": kind.nvswitch,
        "nccl_protocol": kind.nccl_protocol,
        "nccl_largest_gib": kind.largest_message_gib,
        "nccl_two_nodes_judged": kind.nccl_two_nodes_judged or None,
    }
    return {name: value for name, value in facts.items() if value is not None}

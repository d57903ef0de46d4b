"""Rules on: Kubernetes on EKS. What pods may be, and what they need all the same."""

from __future__ import annotations

from ultracluster.config.remedy import ask, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS


@EKS.warning(
    57,
    "Kubernetes documentation, Pod Security Standards (restricted: no root); acceptance/mpijob.yaml",
    "2026-11-22",
)
def acceptance_job_admitted(cluster: Cluster) -> Breaches:
    """The acceptance job is let into the namespace `default`."""
    settings = cluster.kubernetes
    if settings and settings.mpi_operator and settings.pod_security == "restricted":
        yield at("orchestrator", "pod_security").breach(
            "`restricted` refuses root, and the SSH server of the acceptance job's workers is root: "
            "`ultracluster wait` cannot measure the fabric, whose job runs in `default`.",
            write("baseline"),
        )


@EKS.warning(
    58,
    "awslabs/amazon-eks-ami, nodeadm base-runtime-spec.json (no RLIMIT_MEMLOCK); systemd-system.conf, "
    "DefaultLimitMEMLOCK; libfabric, prov/efa/docs/overview.md",
    "2026-11-22",
)
def locked_memory_for_efa(cluster: Cluster) -> Breaches:
    """Pods on nodes with EFA may lock memory."""
    if cluster.runs_scripts:
        return
    for group in cluster.with_role("compute").values():
        if group.type and group.type.efa_interfaces:
            yield at("orchestrator", "lifecycle").breach(
                "without our scripts containers may lock 8 MiB on EKS's image, and no level of Pod Security "
                f"lets a pod raise that: EFA on {group.name} ends in `Cannot allocate memory`.",
                write("user-data")
                | ask("action", "acknowledge this where the image sets LimitMEMLOCK=infinity for containerd"),
            )
            return

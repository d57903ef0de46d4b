"""What the pods of a job claim through Kubernetes' Dynamic Resource Allocation, and who hands it out.

A ComputeDomain makes the IMEX channel by which NVLink joins nodes of an UltraServer
(kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, `resource.nvidia.com/v1beta1`; EKS User Guide, Use P6e-GB200
UltraServers with Amazon EKS). EFA interfaces are claimed of AWS's build of DRANET (EKS User Guide, Manage EFA
devices on Amazon EKS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa, has_compute_domains
from ultracluster.model.team_shares import Pool

Manifest = dict[str, Any]

CLIQUE = "nvidia.com/gpu.clique"
"""Label of NVIDIA's GPU feature discovery: nodes that share it are joined by NVLink."""
EFA_CLASS = "efa.networking.k8s.aws"
"""DeviceClass of the EFA DRA driver."""
EFA_DRIVER, NVIDIA_DRIVER = "aws-dranet", "dra-driver-nvidia-gpu"
"""Their charts."""
_CHANNEL, _EFA = "compute-domain", "efa"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What one job claims."""

    objects: tuple[Manifest, ...] = ()
    """To be applied before the job, in its namespace; they are deleted with it."""
    templates: tuple[tuple[str, str], ...] = ()
    """Name of each claim in a pod, and of the ResourceClaimTemplate that it is made from."""

    @property
    def of_pod(self) -> list[dict[str, str]]:
        return [{"name": name, "resourceClaimTemplateName": template} for name, template in self.templates]

    @property
    def of_container(self) -> list[dict[str, str]]:
        return [{"name": name} for name, _ in self.templates]


def job_claims(
    cluster: Cluster, pool: Pool, *, name: str, namespace: str, efa_interfaces: int | None = None
) -> Claims:
    """Claims of a job's pods: an IMEX channel, and EFA interfaces.

    One ComputeDomain for each job, as AWS advises: jobs that shared one could reach each other's memory. Its
    template is made by the driver. Nodes of several UltraServers may share a ComputeDomain: the driver joins
    those of each.

    Args:
        cluster: where it runs.
        pool: its nodes.
        name: of the job, and of what is made for it.
        namespace: of the job.
        efa_interfaces: of a pod that has a part of a node; by default all of a node's.
    """
    objects: list[Manifest] = []
    templates: list[tuple[str, str]] = []
    if has_compute_domains(cluster, pool.instance_type):
        template = f"{name}-{_CHANNEL}"
        objects.append(
            {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "ComputeDomain",
                "metadata": {"name": name, "namespace": namespace},
                # 0: the domain grows with the nodes that come; a number would only be shown in its status
                "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
            }
        )
        templates.append((_CHANNEL, template))
    every = pool.instance_type.least_efa_interfaces
    interfaces = every if efa_interfaces is None else efa_interfaces
    if claims_efa(cluster) and interfaces:
        template = f"{name}-{_EFA}"
        # an exact number, not `All`: a node that has lost an interface takes no job
        exactly = {"deviceClassName": EFA_CLASS, "allocationMode": "ExactCount", "count": interfaces}
        objects.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": template, "namespace": namespace},
                "spec": {"spec": {"devices": {"requests": [{"name": _EFA, "exactly": exactly}]}}},
            }
        )
        templates.append((_EFA, template))
    return Claims(objects=tuple(objects), templates=tuple(templates))


def nvidia_driver_values(instance_types: Sequence[str]) -> dict[str, Any]:
    """Values of the chart of NVIDIA's DRA driver: ComputeDomains on nodes that NVLink can join, nothing else.

    GPUs stay with the device plugin: both on one node would give a GPU to two pods.
    """
    terms = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(instance_types)}]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {
        "resources": {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}},
        "kubeletPlugin": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            "tolerations": [{"operator": "Exists"}],
        },
    }


__all__ = [
    "CLIQUE",
    "EFA_CLASS",
    "EFA_DRIVER",
    "NVIDIA_DRIVER",
    "Claims",
    "job_claims",
    "nvidia_driver_values",
]

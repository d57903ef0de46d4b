"""The acceptance job of Trainium for Kubernetes.

Slurm's is lifecycle_scripts/acceptance/nccom_test.sbatch, as it is.
"""

from __future__ import annotations

from string import Template

from ultracluster.acceptance.patterns import scripts_folder
from ultracluster.catalog import InstanceType, ultraserver

PROGRAM = "nccom-test"
_ONE_ULTRASERVER = """\
          affinity:
            podAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                - labelSelector:
                    matchLabels:
                      training.kubeflow.org/job-role: worker
                      training.kubeflow.org/job-name: ${name}
                  topologyKey: ${label}
"""


def neuron_manifest(
    kind: InstanceType, nodes: int, *, image: str, name: str, namespace: str, hyperpod: bool
) -> str:
    """The MPIJob as YAML; the arguments are those of `job.manifest`, and have been looked at there.

    Raises:
        ValueError: how many NeuronCores the type has is not known.
    """
    if kind.accelerator is None or kind.logical_neuron_cores is None:
        raise ValueError(f"how many NeuronCores {kind.name} has is not known")
    values = {
        "instance_type": kind.name,
        "node_type": kind.hyperpod_name if hyperpod else kind.name,
        "nodes": nodes,
        "image": image,
        "name": name,
        "namespace": namespace,
        "devices": kind.accelerator.count,
        "cores": kind.logical_neuron_cores,
        "ranks": kind.logical_neuron_cores * nodes,
        "efa_interfaces": kind.least_efa_interfaces,
        "program": PROGRAM,
        "affinity": _affinity(kind, nodes, name),
    }
    text = (scripts_folder() / "acceptance" / "neuron_mpijob.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def _affinity(kind: InstanceType, nodes: int, name: str) -> str:
    """Workers of one UltraServer, where they are as many as it has instances."""
    for one in filter(None, map(ultraserver, kind.ultraserver)):
        if one.node_label and nodes == one.instances:
            return Template(_ONE_ULTRASERVER).substitute(name=name, label=one.node_label)
    return ""


__all__ = ["neuron_manifest"]

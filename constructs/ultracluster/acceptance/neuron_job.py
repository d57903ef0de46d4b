"""What the acceptance job of Trainium has of its own on Kubernetes; Slurm's is nccom_test.sbatch."""

from __future__ import annotations

from string import Template

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


def neuron_values(kind: InstanceType, nodes: int, name: str) -> dict[str, object]:
    """Return values of neuron_mpijob.yaml that the other job does not have.

    Raises:
        ValueError: how many NeuronCores the type has is not known.
    """
    if kind.accelerator is None or kind.logical_neuron_cores is None:
        raise ValueError(f"how many NeuronCores {kind.name} has is not known")
    return {
        "devices": kind.accelerator.count,
        "cores": kind.logical_neuron_cores,
        "ranks": kind.logical_neuron_cores * nodes,
        "program": PROGRAM,
        "affinity": _affinity(kind, nodes, name),
    }


def _affinity(kind: InstanceType, nodes: int, name: str) -> str:
    """Workers of one UltraServer, where they are as many as it has instances."""
    for one in filter(None, map(ultraserver, kind.ultraserver)):
        if one.node_label and nodes == one.instances:
            return Template(_ONE_ULTRASERVER).substitute(name=name, label=one.node_label)
    return ""

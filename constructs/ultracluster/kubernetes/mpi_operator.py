"""The MPI operator in objects of our own: it has no chart, and its makers' manifests are not copied.

`mpi_operator.yaml` has the objects; `catalog/mpi_operator.json` the release. The schema of MPIJob is small:
it says what must be there and of what kind it is, and leaves templates of pods to the operator and to
Kubernetes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ultracluster.catalog.eks import mpi_operator_image
from ultracluster.config.nodes import ROLE_LABEL
from ultracluster.kubernetes.tolerations import Tolerations
from ultracluster.kubernetes.yaml_template import filled

NAMESPACE = "mpi-operator"
GROUP, VERSION = "kubeflow.org", "v2beta1"
_FILE = Path(__file__).with_suffix(".yaml")

Manifest = dict[str, Any]


def mpi_operator(*, image: str | None = None, tolerations: Tolerations | None = None) -> tuple[Manifest, ...]:
    """The operator and the definition of MPIJob, in the order in which they are applied.

    Args:
        image: a copy of its container image, for networks without a way to its maker's.
        tolerations: of taints that the system nodes have.
    """
    return tuple(
        filled(
            _FILE,
            "operator",
            definition=job_definition(),
            image=image or mpi_operator_image(),
            node_selector={ROLE_LABEL: "system"},
            tolerations=tolerations or None,
        )
    )


def job_definition() -> Manifest:
    """The definition of MPIJob `v2beta1`."""
    return filled(_FILE, "job_definition")


__all__ = ["GROUP", "NAMESPACE", "VERSION", "job_definition", "mpi_operator"]

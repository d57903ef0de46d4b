"""What schedules jobs and keeps nodes alive."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Model
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm import SlurmSettings


class HyperPodSlurm(Model):
    """SageMaker HyperPod with Slurm, configured through the API."""

    kind: Literal["hyperpod-slurm"] = "hyperpod-slurm"
    cluster_name: (
        Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$", max_length=63)] | None
    ) = None
    """Name of the HyperPod cluster; the environment's name by default. A new name is a new cluster."""
    provisioning: Literal["continuous", "classic"] = "continuous"
    """`continuous` takes partial capacity and retries in the background; `classic` is all or nothing
    for each change. Cannot change later."""
    node_recovery: Literal["automatic", "none"] = "automatic"
    """Replace or reboot faulty nodes by itself."""
    slurm_config_strategy: Literal["merge", "managed", "overwrite"] | None = None
    """What happens to hand edits of slurm.conf. `classic` only, and there it must be chosen; continuous
    provisioning always merges."""
    node_roles: Literal["each", "one"] = "each"
    """`each`: controller, login and compute nodes have an IAM role each, and only the controller's reads the
    accounting database's password. `one`: all have the same, for a cluster that was made so: HyperPod keeps
    the role of an instance group that exists."""
    slurm_settings: SlurmSettings = {}
    """Parameters of slurm.conf for the cluster, of those that HyperPod's agent does not keep to itself. They
    are in a file on the controller that slurm.conf includes last."""
    lifecycle: Literal["on-init-complete", "on-create", "none"] = "on-init-complete"
    """When our scripts run: after the image has set up Slurm and the mounts (`on-init-complete`),
    instead of that (`on-create`; refused, as they do not do all that it does), or not at all (`none`)."""

    @property
    def no_slurm_file(self) -> str:
        """Why no settings of ours get into slurm.conf; empty where they do."""
        if self.lifecycle == "none":
            return "lifecycle is `none`: nothing of ours runs on the controller"
        if self.provisioning == "classic" and self.slurm_config_strategy in ("managed", "overwrite"):
            strategy = self.slurm_config_strategy
            return f"slurm_config_strategy is `{strategy}`: slurm.conf belongs to the service"
        return ""


OrchestratorSettings = HyperPodSlurm | HyperPodEks | ParallelCluster | Pcs | Eks
Orchestrator = Annotated[OrchestratorSettings, Field(discriminator="kind")]
OrchestratorKind = Literal["hyperpod-slurm", "hyperpod-eks", "parallelcluster", "pcs", "eks"]

HYPERPOD: frozenset[OrchestratorKind] = frozenset({"hyperpod-slurm", "hyperpod-eks"})
"""AWS runs the nodes in an account of its own and places them; `ml.` instance types."""
KUBERNETES: frozenset[OrchestratorKind] = frozenset({"hyperpod-eks", "eks"})
SLURM: frozenset[OrchestratorKind] = frozenset({"hyperpod-slurm", "parallelcluster", "pcs"})

__all__ = [
    "HYPERPOD",
    "KUBERNETES",
    "SLURM",
    "Eks",
    "HyperPodEks",
    "HyperPodSlurm",
    "Orchestrator",
    "OrchestratorKind",
    "OrchestratorSettings",
    "ParallelCluster",
    "Pcs",
]

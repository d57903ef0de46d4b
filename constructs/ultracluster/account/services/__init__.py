"""Services that run nodes which are instances of the account: which one runs those of a cluster."""

from __future__ import annotations

from typing import assert_never

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, message
from ultracluster.account.services.eks import EKS
from ultracluster.account.services.parallelcluster import PARALLELCLUSTER
from ultracluster.account.services.pcs import PCS
from ultracluster.account.services.service import Managed, Marks, Service
from ultracluster.config.orchestrator import Eks, HyperPodEks, HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.model import Cluster


def service_of(cluster: Cluster) -> Service | None:
    """The service that runs the groups in `cluster.in_account`; None where HyperPod runs every node."""
    match cluster.settings:
        case Eks() | HyperPodEks():
            return EKS
        case ParallelCluster():
            return PARALLELCLUSTER
        case Pcs():
            return PCS
        case HyperPodSlurm():
            return None
        case _ as never:
            assert_never(never)


def managed_groups(account: Account, cluster: Cluster) -> list[Managed]:
    """Every group whose nodes are instances of the account.

    Raises:
        AccountError: the cluster is not there, or cannot be read.
    """
    service = service_of(cluster)
    try:
        return service.groups(account, cluster) if service else []
    except AWS_ERRORS as error:
        missing = code(error).startswith("ResourceNotFound") or "does not exist" in message(error)
        if missing:
            raise AccountError(
                f"there is no cluster {cluster.cluster_name} in {account.region} of this account: "
                f"deploy it first (`make deploy ENV={cluster.name}`)"
            ) from None
        raise AccountError(explain(error)) from None


__all__ = ["Managed", "Marks", "Service", "managed_groups", "service_of"]

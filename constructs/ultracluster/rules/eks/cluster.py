"""Rules on: Kubernetes on EKS. The cluster: who may use it, and which charts are installed from where."""

from __future__ import annotations

import difflib

from ultracluster.catalog.eks import charts
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.network import Network
from ultracluster.config.remedy import ask, beside, drop, rename, write
from ultracluster.config.storage import ExistingDatabase, RdsMySql
from ultracluster.model import Cluster
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import scheduler_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS


@EKS.warning(7, "EKS User Guide, Grant IAM users access with access entries")
def access_entry_exists(settings: Eks | HyperPodEks) -> Breaches:
    """At least one principal may use the cluster."""
    if not settings.admins:
        yield at().breach(
            "no principal has an access entry, not even the one that deploys: kubectl would answer "
            "Unauthorized.",
            ask("fact", "admins: [arn:aws:iam::<account>:role/<role>]"),
        )


@EKS.error(8, "this configuration: accounting_database is Slurm's")
def no_slurm_accounting_database(database: RdsMySql | ExistingDatabase) -> Breaches:
    """A Kubernetes cluster has no Slurm accounting database."""
    yield at().breach(
        "this database is for Slurm's accounting, and there is no Slurm here: nothing would use it.", drop()
    )


@EKS.error(9, "catalog/charts.json: makers' public repositories")
def closed_network_has_charts(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """A closed network has a repository with copies of the charts."""
    if cluster.environment.network.egress != "closed" or not _has_charts(settings, cluster):
        return
    if not settings.chart_repository:
        yield at().breach(
            "egress is `closed`, so the public repositories of the charts are not reached: device plugins "
            "would not be installed, and the deployment would fail.",
            ask(
                "fact",
                "chart_repository: oci://<account>.dkr.ecr.<region>.amazonaws.com/<prefix> with copies of "
                "the charts, and chart_values that name the copies of their images",
            ),
        )


@EKS.error(10, "this configuration: catalog/charts.json")
def chart_names_exist(settings: Eks | HyperPodEks) -> Breaches:
    """chart_values names charts that exist."""
    for name in settings.chart_values:
        if name not in charts():
            near = difflib.get_close_matches(name, list(charts()), n=1)
            yield at("chart_values", name).breach(
                f"there is no chart `{name}`: these values would have no effect.",
                rename(near[0]) if near else drop().noting(f"the charts are {', '.join(charts())}"),
            )


@EKS.error(11, "kubeflow/trainer, charts/kubeflow-trainer (jobset.install)")
def trainer_needs_jobset(settings: Eks | HyperPodEks) -> Breaches:
    """Kubeflow Trainer is installed together with JobSet."""
    if settings.kubeflow_trainer and not settings.jobset:
        yield at("kubeflow_trainer").breach(
            "Trainer creates a JobSet for each job, and JobSet is off.", beside(jobset=True)
        )


@EKS.error(13, "catalog/mpi_operator.json: its maker's public image", "2026-11-21")
def closed_network_has_mpi_image(settings: Eks | HyperPodEks, network: Network) -> Breaches:
    """A closed network has a copy of the MPI operator's image."""
    if settings.mpi_operator and not settings.mpi_operator_image and network.egress == "closed":
        yield at("mpi_operator").breach(
            "egress is `closed`, so the public registry of the operator's image is not reached.",
            ask("fact", "mpi_operator_image: <account>.dkr.ecr.<region>.amazonaws.com/<copy>:<tag>"),
        )


@EKS.warning(107, "kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs/rayjob", "2026-11-28")
def rayjobs_need_kueue(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """RayJobs should be admitted by Kueue."""
    scheduler = scheduler_of(cluster)
    if settings.kuberay and scheduler != "kueue":
        yield at("kuberay").breach(
            f"with `{scheduler}` no queue is known to start the pods of a RayJob together: they would start "
            "one by one, outside of the teams' quotas.",
            write(False) if scheduler == "task-governance" else beside(scheduler="kueue") | write(False),
        )


def _has_charts(settings: Eks | HyperPodEks, cluster: Cluster) -> bool:
    """Whether anything is installed out of public registries: device plugins, a scheduler, what jobs ask for,
    Karpenter, what collects metrics."""
    types = [kind for group in cluster.with_role("compute").values() for kind in group.types if kind]
    makers = {kind.accelerator.manufacturer for kind in types if kind.accelerator}
    return any(
        (
            any(kind.efa_interfaces != 0 for kind in types),
            "AWS" in makers,
            "NVIDIA" in makers and settings.gpu_plugin != "none",
            settings.scheduler != "none",
            settings.jobset,
            settings.leader_worker_set,
            settings.kubeflow_trainer,
            settings.kuberay,
            cluster.karpenter,
            collects(cluster),
        )
    )

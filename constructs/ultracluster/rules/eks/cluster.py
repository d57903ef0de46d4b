"""Rules on: Kubernetes on EKS. The cluster: who may use it, and which charts are installed from where."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ultracluster.catalog.eks import charts
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.network import Network
from ultracluster.config.remedy import ask, beside, drop, rename, write
from ultracluster.config.storage import ExistingDatabase, RdsMySql
from ultracluster.model import Cluster
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import scheduler_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS


@EKS.rule(
    7,
    "warning",
    "At least one principal may use the cluster",
    source="EKS User Guide, Grant IAM users access with access entries",
)
def no_admins(settings: Eks | HyperPodEks) -> Iterator[Breach]:
    if not settings.admins:
        yield Breach(
            (),
            "no principal has an access entry, not even the one that deploys: kubectl would answer "
            "Unauthorized.",
            ask("fact", "admins: [arn:aws:iam::<account>:role/<role>]"),
        )


@EKS.rule(
    8,
    "error",
    "A Kubernetes cluster has no Slurm accounting database",
    source="this configuration: accounting_database is Slurm's",
)
def no_accounting(database: RdsMySql | ExistingDatabase) -> Iterator[Breach]:
    yield Breach(
        (),
        "this database is for Slurm's accounting, and there is no Slurm here: nothing would use it.",
        drop(),
    )


@EKS.rule(
    9,
    "error",
    "A closed network has a repository with copies of the charts",
    source="catalog/charts.json: makers' public repositories",
)
def closed_charts(settings: Eks | HyperPodEks, cluster: Cluster) -> Iterator[Breach]:
    if cluster.environment.network.egress != "closed" or not _has_charts(settings, cluster):
        return
    if not settings.chart_repository:
        yield Breach(
            (),
            "egress is `closed`, so the public repositories of the charts are not reached: device plugins "
            "would not be installed, and the deployment would fail.",
            ask(
                "fact",
                "chart_repository: oci://<account>.dkr.ecr.<region>.amazonaws.com/<prefix> with copies of "
                "the charts, and chart_values that name the copies of their images",
            ),
        )


@EKS.rule(
    10, "error", "chart_values names charts that exist", source="this configuration: catalog/charts.json"
)
def chart_names(settings: Eks | HyperPodEks) -> Iterator[Breach]:
    for name in settings.chart_values:
        if name not in charts():
            near = difflib.get_close_matches(name, list(charts()), n=1)
            yield Breach(
                ("chart_values", name),
                f"there is no chart `{name}`: these values would have no effect.",
                rename(near[0]) if near else drop().noting(f"the charts are {', '.join(charts())}"),
            )


@EKS.rule(
    11,
    "error",
    "Kubeflow Trainer is installed together with JobSet",
    source="kubeflow/trainer, charts/kubeflow-trainer (jobset.install)",
)
def trainer_needs_jobset(settings: Eks | HyperPodEks) -> Iterator[Breach]:
    if settings.kubeflow_trainer and not settings.jobset:
        yield Breach(
            ("kubeflow_trainer",),
            "Trainer creates a JobSet for each job, and JobSet is off.",
            beside(jobset=True),
        )


@EKS.rule(
    13,
    "error",
    "A closed network has a copy of the MPI operator's image",
    source="catalog/mpi_operator.json: its maker's public image",
    date="2026-11-21",
)
def closed_mpi_operator(settings: Eks | HyperPodEks, network: Network) -> Iterator[Breach]:
    if settings.mpi_operator and not settings.mpi_operator_image and network.egress == "closed":
        yield Breach(
            ("mpi_operator",),
            "egress is `closed`, so the public registry of the operator's image is not reached.",
            ask("fact", "mpi_operator_image: <account>.dkr.ecr.<region>.amazonaws.com/<copy>:<tag>"),
        )


@EKS.rule(
    107,
    "warning",
    "RayJobs should be admitted by Kueue",
    source="kubernetes-sigs/kueue v0.19.2, pkg/controller/jobs/rayjob",
    date="2026-11-28",
)
def uncounted_rayjobs(settings: Eks | HyperPodEks, cluster: Cluster) -> Iterator[Breach]:
    scheduler = scheduler_of(cluster)
    if settings.kuberay and scheduler != "kueue":
        yield Breach(
            ("kuberay",),
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

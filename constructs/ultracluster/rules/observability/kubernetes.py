"""Rules on: metrics of a Kubernetes cluster, and what AWS's own collector cannot do there."""

from __future__ import annotations

from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.observability import Observability
from ultracluster.config.remedy import anywhere, write
from ultracluster.model import Cluster
from ultracluster.model.observability import collects
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import KUBERNETES, OBS

DATE = "2026-11-23"
_COLLECTOR = (
    "Amazon Managed Service for Prometheus User Guide, Set up managed Prometheus collectors for Amazon EKS"
)
LEAST_SECONDS = 30


@OBS.error(50, f"{_COLLECTOR}: limitations of the scraper configuration", DATE, kinds=KUBERNETES)
def managed_collector_interval(wanted: Observability, cluster: Cluster) -> Breaches:
    """A managed collector scrapes every 30 seconds at the most."""
    if collects(cluster) and wanted.collector == "managed" and wanted.scrape_seconds < LEAST_SECONDS:
        yield at("scrape_seconds").breach(
            f"AWS's collector takes no interval below {LEAST_SECONDS} seconds and refuses the configuration.",
            write(LEAST_SECONDS).noting("or collector: agent"),
        )


@OBS.warning(
    51,
    f"{_COLLECTOR}: it scrapes from network interfaces of its own; Kubernetes documentation, Network "
    "Policies",
    DATE,
    kinds=KUBERNETES,
)
def managed_collector_reaches_jobs(
    wanted: Observability, cluster: Cluster, settings: Eks | HyperPodEks
) -> Breaches:
    """What training scripts say of themselves is collected."""
    if collects(cluster) and wanted.collector == "managed" and settings.network_policies:
        yield at("collector").breach(
            "AWS's collector is no pod, so that no network policy can let it in alone: step time, loss and "
            "tokens of jobs, and Kueue's queues, are not collected.",
            write("agent"),
        )


@OBS.warning(
    52,
    "this configuration: dcgm-exporter is installed with what makes GPUs resources",
    DATE,
    kinds=KUBERNETES,
)
def gpu_metrics(wanted: Observability, cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """GPUs are watched."""
    types = [known for group in cluster.with_role("compute").values() for known in group.known_types]
    gpus = any(known.accelerator and known.accelerator.manufacturer == "NVIDIA" for known in types)
    if wanted.kind == "prometheus" and gpus and settings.gpu_plugin == "none":
        yield at("kind").breach(
            "orchestrator.gpu_plugin is `none`, so that dcgm-exporter is not installed either: nothing is "
            "known of the GPUs but their XIDs.",
            anywhere({("orchestrator", "gpu_plugin"): "device-plugin"}).noting("or acknowledge this"),
        )

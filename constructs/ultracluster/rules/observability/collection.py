"""Rules on: who collects metrics, and never two at once."""

from __future__ import annotations

from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.observability import Observability
from ultracluster.config.orchestrator import HyperPodSlurm, Pcs
from ultracluster.config.remedy import DROP, anywhere, ask, drop, write
from ultracluster.model import Cluster
from ultracluster.model.metric_series import series_of_node
from ultracluster.model.observability import collects, collects_on_nodes, scrapes_slurm, uses_addon
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.observability.workspace import DATE
from ultracluster.rules.sets import HPE, HPS, HYPERPOD, OBS, PCS, SLURM, kinds_with
from ultracluster.rules.sources import PCS_GUIDE

_ADDON = "SageMaker Developer Guide, Amazon SageMaker HyperPod observability: set up the add-on"
_OLD = ("orchestrator", "observability")


@OBS.error(
    16,
    f"{_ADDON}; this configuration: the others have our exporters",
    DATE,
    kinds=kinds_with(lambda traits: not traits.hyperpod),
)
def hyperpod_collection(wanted: Observability, cluster: Cluster) -> Breaches:
    """HyperPod's own collection is for HyperPod."""
    if wanted.kind == "hyperpod":
        yield at("kind").breach(
            f"{cluster.traits.kind} has no collection of its own.", write("prometheus", "cloudwatch")
        )


@OBS.error(17, "SageMaker API Reference, CreateClusterExtension", DATE, kinds=HPS.kinds)
def extension_needs_continuous(wanted: Observability, cluster: Cluster) -> Breaches:
    """HyperPod's extension needs continuous provisioning."""
    settings = cluster.settings
    if wanted.kind != "hyperpod" or not isinstance(settings, HyperPodSlurm):
        return
    if settings.provisioning != "continuous":
        yield at("kind").breach(
            f"the cluster's provisioning is {settings.provisioning}, and such a cluster takes no extension.",
            write("prometheus").noting(
                "or orchestrator.provisioning: continuous, for a cluster that is not made yet"
            ),
        )


@OBS.error(
    18,
    f"{_ADDON}: exporters of your own beside those of the add-on count everything twice",
    DATE,
    kinds=HPE.kinds,
)
def one_collection_per_node(wanted: Observability, cluster: Cluster) -> Breaches:
    """One collection runs on a node, not two."""
    settings = cluster.settings
    if not isinstance(settings, HyperPodEks) or settings.observability is None:
        return
    if wanted.kind == "prometheus":
        yield at("kind").breach(
            "orchestrator.observability installs HyperPod's add-on, whose exporters would run beside ours.",
            anywhere({_OLD: DROP}) | write("cloudwatch"),
        )
    elif wanted.kind == "hyperpod":
        workspace = {"arn": settings.observability.workspace_arn}
        yield at("kind").breach(
            "orchestrator.observability asks for the same add-on: one of them says where it writes to.",
            anywhere({_OLD: DROP, ("observability", "workspace"): workspace})
            if wanted.workspace is None and "retention_days" not in wanted.model_fields_set
            else anywhere({_OLD: DROP}),
        )


@OBS.warning(19, _ADDON, DATE, kinds=HPE.kinds)
def addon_needs_large_node(cluster: Cluster) -> Breaches:
    """HyperPod's observability add-on has a node of 4xlarge or larger."""
    if not uses_addon(cluster):
        return
    types = [group.type for group in cluster.groups.values() if group.in_service]
    if types and all(one is not None and one.vcpu < _VCPU for one in types):
        ours = cluster.environment.observability is not None
        yield at(*("observability", "kind") if ours else _OLD).breach(
            "no group of HyperPod has nodes of 4xlarge (16 vCPU) or larger, which its central collector asks "
            "for.",
            write("prometheus").noting("or a group with larger nodes")
            if ours
            else ask("decision", "a group with larger nodes, or observability with kind: prometheus"),
        )


_VCPU = 16


@OBS.error(20, f"{_ADDON}: ampWorkspace has an ARN and an endpoint, and no role", DATE, kinds=HYPERPOD)
def hyperpod_collection_role(wanted: Observability) -> Breaches:
    """HyperPod's own collection writes as itself."""
    if wanted.kind == "hyperpod" and wanted.workspace and wanted.workspace.role_arn:
        yield at("workspace", "role_arn").breach(
            "HyperPod's own collection assumes no role: it writes with the rights of its pods or nodes.",
            drop().noting("the workspace's resource policy may let them in"),
        )


@OBS.error(21, "lifecycle_scripts/steps/metrics.sh", DATE, kinds=SLURM)
def exporters_need_scripts(wanted: Observability, cluster: Cluster) -> Breaches:
    """Nodes run the scripts that install exporters."""
    if wanted.kind == "prometheus" and collects_on_nodes(cluster) and not cluster.runs_scripts:
        yield at("kind").breach(
            "orchestrator.lifecycle is `none`: nothing on the nodes collects.",
            write("cloudwatch").noting("or let nodes run the scripts: remove orchestrator.lifecycle"),
        )


@OBS.warning(
    22,
    f"{PCS_GUIDE}, Slurm metrics: the controller's port 6817, from nodes of the cluster",
    DATE,
    kinds=PCS.kinds,
)
def slurm_metrics_need_login(wanted: Observability, cluster: Cluster) -> Breaches:
    """Slurm's own metrics have a node that asks for them."""
    if wanted.kind == "prometheus" and isinstance(cluster.settings, Pcs) and not cluster.with_role("login"):
        yield at().breach(
            "PCS runs the controller, and no login group is there to ask it: queues, nodes and jobs of "
            "Slurm have no metrics.",
            ask("decision", "a login group"),
        )


@OBS.error(23, "Amazon Managed Service for Prometheus User Guide, Managed collectors", DATE, kinds=SLURM)
def managed_collector_needs_kubernetes(wanted: Observability) -> Breaches:
    """A managed collector is for Kubernetes."""
    if wanted.collector == "managed" and wanted.kind != "cloudwatch":
        yield at("collector").breach("AWS's collector finds pods, and nodes of Slurm are none.", drop())


@OBS.warning(24, "Prometheus documentation, sample_limit: a scrape with more samples fails as a whole", DATE)
def series_budget(wanted: Observability, cluster: Cluster) -> Breaches:
    """A node's series fit into its budget."""
    budget = wanted.budget_series_per_node
    if budget is None or not collects(cluster):
        return
    most = {
        group.name: series_of_node(cluster, group, asks_slurm=scrapes_slurm(cluster, group)).of_node
        for group in cluster.groups.values()
    }
    group = max(most, key=lambda name: most[name])
    if most[group] > budget:
        yield at("budget_series_per_node").breach(
            f"a node of {group} has up to {most[group]:,} series: of an exporter with more than {budget:,} "
            "nothing is taken in.",
            drop() | write(most[group]).noting("or more"),
        )

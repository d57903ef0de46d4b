"""Rules on: the Prometheus workspace that metrics are written to."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.config.base import is_token
from ultracluster.config.observability import ExistingWorkspace, Observability, workspace_place
from ultracluster.config.remedy import DROP, anywhere, ask, drop, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import OBS

DATE = "2026-11-22"
_GUIDE = "Amazon Managed Service for Prometheus User Guide"
OF_A_MADE_ONE = ("retention_days", "max_series")
"""What can be said only of a workspace that is made here."""


@OBS.error(1, "CloudFormation registry schemas (AWS::APS::Workspace), botocore's endpoints", DATE)
def prometheus_region(wanted: Observability, home: Region) -> Breaches:
    """Prometheus is in the Region."""
    if wanted.makes_workspace and home.prometheus is False:
        yield at().breach(
            f"Amazon Managed Service for Prometheus is not in {home.name}.",
            write({"kind": "cloudwatch"}).noting("or name a workspace of another Region in workspace.arn"),
        )


@OBS.warning(2, "EC2 On-Demand pricing, Data transfer: between Regions each GB is paid", DATE)
def workspace_region(workspace: ExistingWorkspace, cluster: Cluster) -> Breaches:
    """Metrics stay in the Region of the cluster."""
    if is_token(workspace.arn):
        return
    there = workspace_place(workspace.arn)[0]
    if there == cluster.region:
        return
    closed = cluster.environment.network.egress == "closed"
    way = (
        "with egress: closed nothing leads there: the endpoint that is made reaches the cluster's own Region"
        if closed
        else "every sample crosses Regions, and is paid as such"
    )
    yield at("arn").breach(
        f"the workspace is in {there}, the cluster in {cluster.region}: {way}.",
        anywhere({("observability", "workspace"): DROP}).noting(
            "a workspace is made then; or acknowledge this"
        ),
    )


@OBS.warning(3, f"{_GUIDE}: Set up cross-account ingestion", DATE)
def workspace_account(workspace: ExistingWorkspace, cluster: Cluster) -> Breaches:
    """A workspace of another account is written to through a role."""
    account = cluster.environment.account
    if account is None or is_token(workspace.arn) or workspace.role_arn:
        return
    theirs = workspace_place(workspace.arn)[1]
    if theirs != account:
        yield at().breach(
            f"the workspace is of account {theirs}, and nodes write as roles of {account}: it refuses them, "
            "unless its own resource policy lets them in.",
            ask("fact", f"role_arn of a role of {theirs} that trusts {account} and may aps:RemoteWrite"),
        )


@OBS.error(
    4, "CloudFormation: AWS::APS::Workspace is made or it is not; an existing one is not changed", DATE
)
def existing_workspace_settings(wanted: Observability) -> Breaches:
    """What exists keeps its owner's settings."""
    if wanted.workspace is None:
        return
    for key in OF_A_MADE_ONE:
        if key in wanted.model_fields_set:
            yield at(key).breach(
                "the workspace exists, so its retention and limits are its owner's: this does nothing.",
                drop(),
            )


@OBS.error(5, "docs/observability-setup.md", DATE)
def workspace_needs_prometheus(wanted: Observability) -> Breaches:
    """Only Prometheus has a workspace, series and a collector."""
    if wanted.kind != "cloudwatch":
        return
    for key in (*OF_A_MADE_ONE, "workspace", "budget_series_per_node", "collector", "scrape_seconds"):
        if key in wanted.model_fields_set:
            yield at(key).breach(
                "with `kind: cloudwatch` nothing collects metrics of nodes: this does nothing.", drop()
            )


@OBS.warning(
    6, f"{_GUIDE}, Configure your workspace: retention; alerts on growth compare with the week before", DATE
)
def metrics_retention(wanted: Observability) -> Breaches:
    """Metrics are kept for longer than alerts look back."""
    if wanted.makes_workspace and wanted.retention_days < 8:
        yield at("retention_days").breach(
            f"after {wanted.retention_days} days nobody can compare this week with the last, and alerts on "
            "slow growth (ECC errors) look back over a week.",
            write(150, 30),
        )

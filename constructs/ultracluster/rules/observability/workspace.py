"""Rules on: the Prometheus workspace that metrics are written to."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import Region
from ultracluster.config.base import is_token
from ultracluster.config.observability import ExistingWorkspace, Observability, workspace_place
from ultracluster.config.remedy import DROP, anywhere, ask, drop, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import OBS

DATE = "2026-11-22"
_GUIDE = "Amazon Managed Service for Prometheus User Guide"
OF_A_MADE_ONE = ("retention_days", "max_series")
"""What can be said only of a workspace that is made here."""


@OBS.rule(
    1,
    "error",
    "Prometheus is in the Region",
    source="CloudFormation registry schemas (AWS::APS::Workspace), botocore's endpoints",
    date=DATE,
)
def region_without(wanted: Observability, home: Region) -> Iterator[Breach]:
    if wanted.makes_workspace and home.prometheus is False:
        yield Breach(
            (),
            f"Amazon Managed Service for Prometheus is not in {home.name}.",
            write({"kind": "cloudwatch"}).noting("or name a workspace of another Region in workspace.arn"),
        )


@OBS.rule(
    2,
    "warning",
    "Metrics stay in the Region of the cluster",
    source="EC2 On-Demand pricing, Data transfer: between Regions each GB is paid",
    date=DATE,
)
def other_region(workspace: ExistingWorkspace, cluster: Cluster) -> Iterator[Breach]:
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
    yield Breach(
        ("arn",),
        f"the workspace is in {there}, the cluster in {cluster.region}: {way}.",
        anywhere({("observability", "workspace"): DROP}).noting(
            "a workspace is made then; or acknowledge this"
        ),
    )


@OBS.rule(
    3,
    "warning",
    "A workspace of another account is written to through a role",
    source=f"{_GUIDE}: Set up cross-account ingestion",
    date=DATE,
)
def other_account(workspace: ExistingWorkspace, cluster: Cluster) -> Iterator[Breach]:
    account = cluster.environment.account
    if account is None or is_token(workspace.arn) or workspace.role_arn:
        return
    theirs = workspace_place(workspace.arn)[1]
    if theirs != account:
        yield Breach(
            (),
            f"the workspace is of account {theirs}, and nodes write as roles of {account}: it refuses them, "
            "unless its own resource policy lets them in.",
            ask("fact", f"role_arn of a role of {theirs} that trusts {account} and may aps:RemoteWrite"),
        )


@OBS.rule(
    4,
    "error",
    "What exists keeps its owner's settings",
    source="CloudFormation: AWS::APS::Workspace is made or it is not; an existing one is not changed",
    date=DATE,
)
def settings_of_another(wanted: Observability) -> Iterator[Breach]:
    if wanted.workspace is None:
        return
    for key in OF_A_MADE_ONE:
        if key in wanted.model_fields_set:
            yield Breach(
                (key,),
                "the workspace exists, so its retention and limits are its owner's: this does nothing.",
                drop(),
            )


@OBS.rule(
    5,
    "error",
    "Only Prometheus has a workspace, series and a collector",
    source="docs/observability-setup.md",
    date=DATE,
)
def without_metrics(wanted: Observability) -> Iterator[Breach]:
    if wanted.kind != "cloudwatch":
        return
    for key in (*OF_A_MADE_ONE, "workspace", "budget_series_per_node", "collector", "scrape_seconds"):
        if key in wanted.model_fields_set:
            yield Breach(
                (key,),
                "with `kind: cloudwatch` nothing collects metrics of nodes: this does nothing.",
                drop(),
            )


@OBS.rule(
    6,
    "warning",
    "Metrics are kept for longer than alerts look back",
    source=f"{_GUIDE}, Configure your workspace: retention; alerts on growth compare with the week before",
    date=DATE,
)
def kept_too_short(wanted: Observability) -> Iterator[Breach]:
    if wanted.makes_workspace and wanted.retention_days < 8:
        yield Breach(
            ("retention_days",),
            f"after {wanted.retention_days} days nobody can compare this week with the last, and alerts on "
            "slow growth (ECC errors) look back over a week.",
            write(150, 30),
        )


__all__ = [
    "kept_too_short",
    "other_account",
    "other_region",
    "region_without",
    "settings_of_another",
    "without_metrics",
]

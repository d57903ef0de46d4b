"""The Grafana workspace of an environment: which one it is, how it is reached, whether it can take boards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain
from ultracluster.account.stack_outputs import stack_outputs
from ultracluster.config.observability import workspace_place
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import assumed_role, observability_of, workspace_region

STACK = "observability"
SCHEME = "https"
OLDEST = (10, 4)
"""The first Grafana that takes our boards; Amazon Managed Grafana offers 8.4 and 9.4, too."""
OWN_PLUGIN = (12, 0)
"""From here on a plugin of its own reads Amazon Managed Service for Prometheus (Amazon Managed Grafana User
Guide, "Differences between Grafana versions")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A workspace of Amazon Managed Grafana that is there."""

    id: str
    url: str
    version: tuple[int, int]
    authentication: tuple[str, ...]
    """`AWS_SSO`, `SAML`, or both."""
    endpoints: tuple[str, ...] = ()
    """VPC endpoints that alone let anybody in, where access is restricted."""
    prefix_lists: tuple[str, ...] = ()
    """Lists of addresses that it lets in, where access is restricted."""

    @property
    def restricted(self) -> str:
        """Return who is let in, in words; empty where everybody who can log in is."""
        if not (self.endpoints or self.prefix_lists):
            return ""
        ways = [
            f"VPC endpoints {', '.join(self.endpoints)}" if self.endpoints else "",
            f"addresses of {', '.join(self.prefix_lists)}" if self.prefix_lists else "",
        ]
        return f"workspace {self.id} lets in only {' and '.join(way for way in ways if way)}"

    @property
    def metrics_plugin(self) -> str:
        """Type of the data source that reads Amazon Managed Service for Prometheus."""
        return "grafana-amazonprometheus-datasource" if self.version >= OWN_PLUGIN else "prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Where Grafana asks for metrics."""

    url: str
    region: str
    role_arn: str | None
    """Role that Grafana's own role assumes, for a workspace of another account."""


def find_workspace(account: Account, cluster: Cluster) -> Workspace:
    """The workspace that the environment names, or that its deploy made.

    Raises:
        AccountError: it is not there, not ready, too old for our boards, or AWS could not be asked.
    """
    workspace = _workspace_id(account, cluster)
    grafana = account.client("grafana")
    try:
        answer: dict[str, Any] = grafana.describe_workspace(workspaceId=workspace)["workspace"]
    except AWS_ERRORS as error:
        if code(error) == "ResourceNotFoundException":
            raise AccountError(
                f"there is no Grafana workspace {workspace} in {account.region} of this account: correct "
                "`observability.grafana.workspace_id`"
            ) from None
        raise AccountError(explain(error)) from None
    if answer["status"] != "ACTIVE":
        raise AccountError(
            f"Grafana workspace {workspace} is {answer['status']}: wait until it is ACTIVE, and try again"
        )
    network: dict[str, list[str]] = answer.get("networkAccessControl") or {}
    found = Workspace(
        id=workspace,
        url=f"{SCHEME}://{answer['endpoint']}",
        version=_version(str(answer["grafanaVersion"])),
        authentication=tuple(answer["authentication"]["providers"]),
        endpoints=tuple(network.get("vpceIds", ())),
        prefix_lists=tuple(network.get("prefixListIds", ())),
    )
    if found.version < OLDEST:
        raise AccountError(
            f"Grafana workspace {workspace} has version {answer['grafanaVersion']}, the boards need "
            f"{'.'.join(map(str, OLDEST))} or newer: update it (`aws grafana update-workspace-configuration "
            f"--workspace-id {workspace} --grafana-version 10.4 --configuration '{{}}'`; AWS never lowers it)"
        )
    return found


def metrics_of(account: Account, cluster: Cluster) -> Metrics | None:
    """Return where Grafana asks for the metrics of a cluster; None where none are kept.

    Raises:
        AccountError: the workspace of the metrics is not deployed, or AWS could not be asked.
    """
    wanted = observability_of(cluster)
    if wanted is None or wanted.kind == "cloudwatch":
        return None
    arn = wanted.workspace.arn if wanted.workspace else _output(account, cluster, "WorkspaceArn")
    region, _, workspace = workspace_place(arn)
    return Metrics(
        url=f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{workspace}/",
        region=workspace_region(cluster) if wanted.workspace else region,
        role_arn=assumed_role(cluster),
    )


def _workspace_id(account: Account, cluster: Cluster) -> str:
    wanted = observability_of(cluster)
    grafana = wanted.grafana if wanted else None
    if grafana and grafana.workspace_id:
        return grafana.workspace_id
    return _output(account, cluster, "GrafanaId")


def _output(account: Account, cluster: Cluster, name: str) -> str:
    stack = cluster.environment.stack_name(STACK)
    found = stack_outputs(account, [stack]).get(stack, {}).get(name)
    if not found:
        raise AccountError(f"stack {stack} has no output {name}: deploy the environment first")
    return found


def _version(text: str) -> tuple[int, int]:
    match = re.match(r"v?(\d+)(?:\.(\d+))?", text)
    if not match:
        raise AccountError(f"AWS says that Grafana's version is `{text}`, which this command cannot read")
    return int(match[1]), int(match[2] or 0)

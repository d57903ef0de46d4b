"""What watches a cluster: metrics, alerts, dashboards, and what all of it may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import OR_TOKEN, Line, Many, Model, Values

MAX_RETENTION_DAYS = 1095
"""Three years (Amazon Managed Service for Prometheus User Guide, "Configure your workspace", 2026-10)."""
LOG_RETENTION_DAYS = 90
"""Facts of log groups, unless a file says another number."""
WORKSPACE_ARN = r"^arn:aws[a-z-]*:aps:[a-z0-9-]+:[0-9]{12}:workspace/ws-[0-9a-f-]+$"

WorkspaceArn = Annotated[
    str,
    Field(
        pattern=WORKSPACE_ARN,
        examples=["arn:aws:aps:us-east-1:111122223333:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"],
    ),
    OR_TOKEN,
]
RoleArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$",
        examples=["arn:aws:iam::111122223333:role/metrics-writer"],
    ),
]
"""No token: nodes read it in a file whose digest is known before anything is deployed."""
TopicArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$",
        examples=["arn:aws:sns:us-east-1:111122223333:training-alerts"],
    ),
    OR_TOKEN,
]
Email = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9.!#$%&'*+=?^_{|}~-]+@[A-Za-z0-9.-]+$",
        max_length=254,
        examples=["oncall@example.com"],
    ),
]
IDENTITY_ID = r"^([0-9a-f]{10}-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""Of a user or group in IAM Identity Center (API Reference, grafana User: id; identitystore UserId)."""
IdentityId = Annotated[
    str,
    Field(
        pattern=IDENTITY_ID,
        examples=["1234567890-12345678-90ab-cdef-1234-567890abcdef"],
    ),
]


class ExistingWorkspace(Model):
    """A workspace of Amazon Managed Service for Prometheus that exists. Its keys, limits, retention, rules
    and alert manager are its owner's: `ultracluster export prometheus` writes ours as files."""

    arn: WorkspaceArn
    """Where metrics are written to; its account and Region may be others than the cluster's."""
    role_arn: RoleArn | None = None
    """IAM role that nodes assume to write to it, and Grafana to read from it, for a workspace of another
    account: it trusts the cluster's account and may `aps:RemoteWrite`. Without it each comes as itself."""


class Alerts(Model):
    """Who is told when an alert fires, an event of AWS arrives, or the budget is exceeded."""

    emails: Annotated[Many[Email], Field(max_length=20)] = ()
    """Addresses that are subscribed to the topic that is made; each confirms once by the mail it gets."""
    topic_arn: TopicArn | None = None
    """SNS topic that exists, e.g. one that a chat is joined to, in the cluster's Region. By default a topic
    with the environment's key is made. Its policy must let in what docs/observability-setup.md lists."""


class Grafana(Model):
    """Dashboards in Amazon Managed Grafana; `ultracluster apply observability` fills it after the deploy."""

    authentication: Literal["AWS_SSO", "SAML"] = "AWS_SSO"
    """How people log in: IAM Identity Center (`AWS_SSO`), or your own provider of identities. AWS offers no
    other way, also not IAM users."""
    admins: Annotated[Many[Line], Field(max_length=100)] = ()
    """Who may administer it: ids of users in IAM Identity Center, or with `SAML` values of the assertion's
    role attribute. Without any nobody can enter a new workspace."""
    admin_groups: Annotated[Many[IdentityId], Field(max_length=100)] = ()
    """Ids of groups in IAM Identity Center whose members may administer it."""
    saml_metadata_url: (
        Annotated[
            str,
            Field(pattern=r"^https://[!-~]+$", max_length=2048, examples=["https://id.example.com/metadata"]),
        ]
        | None
    ) = None
    """Where the provider of identities publishes its SAML metadata."""
    saml_role_attribute: Line = "role"
    """Attribute of the SAML assertion whose values `admins` names."""
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$", examples=["10.4"])] = "10.4"
    """Grafana's version; AWS offers 8.4, 9.4, 10.4, 12.4 and 13. The default is the oldest one that reads our
    boards: AWS raises a version on request and never lowers it. Where people have raised it in the console,
    write the new one here before the next deploy."""
    workspace_id: Annotated[str, Field(pattern=r"^g-[0-9a-f]{10}$", examples=["g-1234567890"])] | None = None
    """A workspace that exists; by default one is made. Its role must be able to read the metrics."""


class Extension(Model):
    """HyperPod's own collection on Slurm, the cluster extension `sagemaker-observability`."""

    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", examples=["1.0.0"])] | None = None
    """Its version; the newest by default. It only goes upwards."""
    configuration: dict[Line, Values] = {}
    """Its settings, passed on as they are: AWS publishes no list of them, and each version has its own."""


class Observability(Model):
    """Metrics, alerts and dashboards of a cluster (docs/observability-setup.md)."""

    kind: Literal["prometheus", "hyperpod", "cloudwatch"] = "prometheus"
    """`prometheus`: exporters and an agent of ours on every node write to Amazon Managed Service for
    Prometheus. `hyperpod`: the service's own add-on or extension does, instead of ours. `cloudwatch`: no
    metrics of nodes, only alarms and events of AWS."""
    workspace: ExistingWorkspace | None = None
    """A workspace that exists; by default one is made, with the environment's key."""
    retention_days: Annotated[int, Field(ge=1, le=MAX_RETENTION_DAYS)] = 150
    """Days until metrics are dropped from the workspace that is made."""
    max_series: Annotated[int, Field(ge=1000, le=1_500_000_000)] | None = None
    """Active series of this cluster beyond which the workspace that is made refuses further ones; what is
    known goes on. By default the workspace's own quota is the bound."""
    scrape_seconds: Annotated[int, Field(ge=15, le=240)] = 30
    """Seconds between two looks at each exporter; half of it costs twice as much. Prometheus takes a series
    for ended after 300."""
    budget_series_per_node: Annotated[int, Field(ge=100, le=200_000)] | None = None
    """Series beyond which a node's exporter is not taken in any more, and an alert says so. By default worked
    out of the node's type, with head room."""
    collector: Literal["agent", "managed"] = "agent"
    """Kubernetes: an agent of ours in the cluster, or the collector that AWS runs (two zones, 30 seconds at
    the least, no metrics of training scripts through network policies, and where the cluster is deleted
    without it, it stays and costs)."""
    alerts: Alerts = Alerts.model_construct()
    """Who is told; by default a topic is made that nobody is subscribed to."""
    grafana: Grafana | None = None
    """Dashboards; by default none."""
    monthly_budget_usd: Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)] | None = None
    """US dollars a month for what carries this environment's tag; AWS Budgets tells the topic at 80 % and at
    100 %. By default there is no budget."""
    extension: Extension | None = None
    """Of `kind: hyperpod` on Slurm."""
    log_retention_days: Literal[30, 60, 90, 120, 180, 365, 731] = LOG_RETENTION_DAYS
    """Days that logs are kept which HyperPod, PCS and the accounting database write to CloudWatch. Without
    `observability` PCS writes none, and the others are kept for ever."""

    @property
    def makes_workspace(self) -> bool:
        """Whether a Prometheus workspace is ours to make."""
        return self.kind != "cloudwatch" and self.workspace is None

    @property
    def makes_topic(self) -> bool:
        """Whether the topic of the alerts is ours to make."""
        return self.alerts.topic_arn is None

    @property
    def makes_grafana(self) -> bool:
        """Whether a Grafana workspace is ours to make."""
        return self.grafana is not None and self.grafana.workspace_id is None


def workspace_place(arn: str) -> tuple[str, str, str]:
    """Region, account and id of a workspace's ARN."""
    parts = arn.split(":")
    return parts[3], parts[4], arn.rpartition("/")[2]


def remote_write_url(arn: str) -> str:
    """Where a workspace takes metrics, in requests signed for `aps` in the workspace's Region."""
    region, _, workspace = workspace_place(arn)
    return f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{workspace}/api/v1/remote_write"


__all__ = ["Alerts", "ExistingWorkspace", "Extension", "Grafana", "Observability"]

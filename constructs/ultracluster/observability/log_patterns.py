"""What is looked for in logs, as filter patterns of CloudWatch Logs, and the metrics that count it.

Amazon CloudWatch Logs User Guide, "Filter pattern syntax for metric filters". Nothing here imports the CDK.
"""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.model import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWatch:
    """Lines of a log that are counted."""

    metric: str
    """Name of the metric, and of the alarm's resource."""
    pattern: str
    text: str
    """What the alarm says, and what to run, with `{name}` for the environment."""
    source: str
    """Where the form of the lines is written down."""


HYPERPOD = (
    LogWatch(
        metric="HealthEvents",
        # the same in `account.doctor.logs`
        pattern='{ $.HealthMonitoringAgentDetectionEvent = "HealthEvent" }',
        text="HyperPod's health monitoring agent has found a fault. Run: ultracluster doctor {name}",
        source="SageMaker Developer Guide, Health Monitoring System",
    ),
    LogWatch(
        metric="LifecycleFailures",
        # the last line of a run that failed (lifecycle_scripts/lib/log.sh): its first word, and a stage
        pattern='[state = "FAILED", stage = "*:", ...]',
        text="lifecycle scripts have failed on a node, which does not join. Run: ultracluster doctor {name}",
        source="lifecycle_scripts/lib/log.sh; streams LifecycleConfig/<group>/<instance>",
    ),
    LogWatch(
        metric="DegradedNodes",
        pattern='[state = "DEGRADED", components, ...]',
        text="a node has joined without something that its release has. Run: ultracluster doctor {name}",
        source="lifecycle_scripts/lib/log.sh; streams LifecycleConfig/<group>/<instance>",
    ),
)
"""Of the group that HyperPod writes to."""

PCS = (
    LogWatch(
        metric="LaunchFailures",
        pattern='{ $.status_code = "LAUNCH_FAILED" }',
        text="PCS could not launch nodes: no capacity, a quota, or an error. Run: ultracluster doctor {name}",
        source="AWS PCS User Guide, Scaling logs in AWS PCS",
    ),
    LogWatch(
        metric="LifecycleFailures",
        pattern='{ $.status_code = "TERMINATED" && $.reason_code = "BOOTSTRAP_FAILED" }',
        text="PCS has ended a node whose first boot failed. Run: ultracluster doctor {name}",
        source="AWS PCS User Guide, Scaling logs in AWS PCS",
    ),
    LogWatch(
        metric="UnhealthyNodes",
        pattern='{ $.reason_code = "UNHEALTHY_NODE" || $.reason_code = "EC2_HEALTH_CHECK_FAILED" '
        '|| $.reason_code = "EC2_SCHEDULED_EVENT" }',
        text="PCS replaces a node that is not healthy. Run: ultracluster nodes list {name}",
        source="AWS PCS User Guide, Scaling logs in AWS PCS",
    ),
)
"""Of the scaling log that PCS delivers."""

LUSTRE = LogWatch(
    metric="DataRepositoryErrors",
    # every message of the guide's tables begins so, but one; the rest of a line is not documented
    pattern='?"Failed to" ?"encountered an internal error" ?"Export skipped"',
    text="Lustre could not import from S3 or export to it: the log of the file system says which file. "
    "Run: ultracluster preflight {name}",
    source="FSx for Lustre User Guide, Data repository event logs",
)
"""Of Lustre's log, where the file system writes one."""


def namespace(cluster: Cluster) -> str:
    """Of the metrics of one cluster: metrics of logs that are no JSON can have no dimensions."""
    return f"Ultracluster/{cluster.cluster_name}"


def log_watches(cluster: Cluster) -> tuple[LogWatch, ...]:
    """What is looked for in the logs of a cluster's service; nothing where it has none that is known."""
    if cluster.traits.hyperpod:
        return HYPERPOD
    return PCS if cluster.traits.delivered_logs else ()


def lustre_watch(cluster: Cluster) -> LogWatch | None:
    """What is looked for in Lustre's logs; None where no file system writes one, or none is made here."""
    new_lustres = [lustre.new for lustre in cluster.lustres.values() if lustre.new]
    return LUSTRE if any(config.log_level != "disabled" for config in new_lustres) else None

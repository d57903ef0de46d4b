"""Rules on: AWS PCS. Capacity that is taken back, and idle nodes that end."""

from __future__ import annotations

from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.pcs.groups import API
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import PCS_GUIDE

INTERRUPTIBLE = f"{PCS_GUIDE}, Using I-ODCRs with AWS PCS"
IDLE = (
    f"{PCS_GUIDE}, Creating a compute node group in AWS PCS; {API}, ComputeNodeGroupSlurmConfigurationRequest"
)
DATE = "2026-11-23"


@PCS.warning(90, INTERRUPTIBLE, DATE)
def interruptible_group_shrinks(group: Group) -> Breaches:
    """A group that grows on an interruptible reservation may shrink to none."""
    lent = group.capacity.kind == "reservation" and group.capacity.takes_back
    if lent and 0 < group.settings.count < group.most_nodes:
        yield at("count").breach(
            f"PCS keeps trying to launch {group.settings.count} nodes after the owner has taken the "
            "reservation back; AWS advises a minimum of 0 for groups that grow.",
            write(0),
        )


@PCS.warning(91, f"{INTERRUPTIBLE}; Slurm, slurm.conf (JobRequeue)", DATE)
def interrupted_jobs_requeue(settings: Pcs, cluster: Cluster) -> Breaches:
    """Jobs on capacity that is taken back start again."""
    key = next((name for name in settings.slurm_settings if name.lower() == "jobrequeue"), "")
    taken = [name for name, group in cluster.with_role("compute").items() if group.capacity.takes_back]
    if key and str(settings.slurm_settings[key]) == "0" and taken:
        yield at("slurm_settings", key).breach(
            f"nodes of {', '.join(taken)} can be taken back at two minutes' notice, and with {key}=0 their "
            "jobs end for good.",
            drop(),
        )


@PCS.error(92, IDLE, DATE)
def idle_time_version(group: Group, settings: Pcs) -> Breaches:
    """The Slurm version has an idle time for each group."""
    since = pcs_since("group_idle_time")
    if group.settings.scaledown_seconds and settings.slurm_version < since:
        yield at("scaledown_seconds").breach(
            f"PCS takes an idle time for a group from Slurm {since} on, and this cluster has "
            f"{settings.slurm_version}.",
            anywhere({("orchestrator", "slurm_version"): since}) | drop(),
        )


@PCS.warning(93, IDLE, DATE)
def idle_time_has_effect(group: Group) -> Breaches:
    """A group with an idle time has nodes that can end."""
    if group.settings.scaledown_seconds and group.most_nodes == group.settings.count:
        yield at("scaledown_seconds").breach(
            "`max_count` is not above `count`: no idle node of this group is ever ended, so this has no "
            "effect.",
            drop().noting("or set max_count above count"),
        )

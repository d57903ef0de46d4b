"""Rules on: the time in which a Lustre file system takes a checkpoint."""

from __future__ import annotations

from ultracluster.catalog.fsx import lustre
from ultracluster.catalog.guidelines import checkpoint_interval
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.remedy import ask
from ultracluster.model import Cluster
from ultracluster.model.checkpoints import checkpoint_gb, likely_parameters, write_speed
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.lustre_changes import faster
from ultracluster.rules.sets import FSX
from ultracluster.rules.storage.offers import offer_at


@FSX.warning(
    61,
    "Rajbhandari et al. 2020, ZeRO: 14 of 16 bytes a parameter go into a checkpoint; FSx for Lustre "
    "User Guide, Performance; assumed: a state that fills half of the accelerators' memory, each hour",
    "2026-11-22",
)
def checkpoint_time(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """Lustre writes a checkpoint within half of the checkpoint interval."""
    interval, tier = checkpoint_interval(), facts.throughput_mbps_per_tib
    tiers = lustre(facts.new.deployment).throughput if facts.new else None
    if tier is not None and tier not in (tiers or ()):
        return  # FSX001 reports it
    writing = [one for name, one in cluster.groups.items() if _writes_to(facts, cluster.lustre_of(name))]
    group = max(writing, key=lambda group: group.accelerator_memory_gib, default=None)
    speed = write_speed(facts, group) if group else None
    if group is None or speed is None:
        return
    size = checkpoint_gb(likely_parameters(group.accelerator_memory_gib))
    seconds = speed.seconds(size)
    if seconds is None or seconds <= interval.most_minutes * 60:
        return
    offer = offer_at(cluster.home, cluster.environment.network) if cluster.home else None
    needed = size * 1000 / (interval.most_minutes * 60)
    yield at().breach(
        f"a checkpoint of {size:,.0f} GB (a training state that fills half of the accelerator memory of "
        f"{group.name}) takes {seconds / 60:,.0f} minutes at {speed.mbps:,.0f} MB/s; with one each "
        f"{interval.minutes:g} minutes, it should take at most {interval.most_minutes:g}.",
        (
            faster(facts, needed, offer.limited if offer else ())
            if speed.limit == "file system"
            else ask("decision", "more nodes, or nodes that mount Lustre over EFA")
        ).noting("or acknowledge it with the size of your model: `ultracluster plan --model` has its time"),
    )


def _writes_to(facts: LustreFacts, first: LustreFacts | None) -> bool:
    """Whether it is the file system on which a group keeps its checkpoints: the first that it mounts."""
    return first is not None and first.settings is facts.settings

"""What slurm.conf of a cluster says: ours, yours and the service's, each with its reason.

The facts are `catalog/slurm.json`; what depends on the cluster is worked out in `slurm/values.py`. A
setting of the environment file replaces ours of the same name as a whole (Slurm does not tell names apart by
case), and takes with it what of ours only holds together with ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ultracluster.catalog.slurm import (
    SettingFacts,
    cgroup_settings,
    hyperpod_slurm_versions,
    parallelcluster_slurm_version,
    slurm_settings,
    word_lists,
    words,
)
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.slurm import SlurmSettings
from ultracluster.model import Cluster
from ultracluster.slurm.nodes import NodeLine, default_partition, node_lines, partition_settings
from ultracluster.slurm.values import has, own_value

Origin = Literal["ultracluster", "yours", "service"]
Way = Literal["api", "file", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One line of slurm.conf."""

    name: str
    """As it is written; Slurm does not tell names apart by case."""
    value: str
    """Empty where the service sets it to a value that is not published."""
    origin: Origin
    why: str
    source: str
    since: str = ""
    """Slurm's first release that takes it; empty for all that the cluster's nodes may run. Nodes below it
    leave it out."""
    needs_accounting: bool = False
    """slurmctld refuses it, or ignores it, without slurmdbd."""
    unless_set: bool = False
    """It holds only where the service has set nothing."""
    note: str = ""
    """What a setting of yours takes away."""


@dataclass(frozen=True, kw_only=True)
class SlurmConfiguration:
    """The settings of a cluster."""

    version: str
    """Slurm's release on the nodes; of several that it may be, the oldest."""
    way: Way
    """How the settings get to the cluster: the service's API, a file on the controller, or not at all."""
    why_not: str = ""
    """Why they do not."""
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    """Of slurm.conf, by name; those of the service, too."""
    cgroup: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    """Of cgroup.conf."""
    partitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Parameters of each partition, ours and yours."""
    default_partition: str = ""
    """Where a job goes that names none: never one with login nodes."""
    nodes: Mapping[str, NodeLine] = field(default_factory=dict[str, NodeLine])
    """What the lines of nodes say, by compute group."""

    def get(self, name: str) -> Setting | None:
        """A setting of slurm.conf by its name in any case."""
        return next((setting for key, setting in self.settings.items() if key.lower() == name.lower()), None)

    @property
    def handed_over(self) -> dict[str, Setting]:
        """What is given to the service or the controller, ours and yours; none where nothing can be."""
        if self.way == "none":
            return {}
        return {name: setting for name, setting in self.settings.items() if setting.origin != "service"}

    def lines(
        self, version: str | None = None, *, service: bool = False, accounting: bool = True
    ) -> list[str]:
        """`Name=Value` of what is handed over.

        Args:
            version: Slurm's release that reads it, `26.05`; by default the oldest that nodes may run.
            service: with what the service sets.
            accounting: with what needs slurmdbd.
        """
        settings = self.settings if service else self.handed_over
        release = version or self.version
        return [
            f"{name}={setting.value}"
            for name, setting in settings.items()
            if setting.value
            and (not setting.since or release >= setting.since)
            and (accounting or not setting.needs_accounting)
        ]

    @property
    def for_controller(self) -> dict[str, object] | None:
        """What a controller that HyperPod runs is told (`slurm` of cluster.json); None where no file is."""
        if self.way != "file":
            return None
        return {
            "settings": [
                {
                    "name": name,
                    "value": setting.value,
                    **({"since": setting.since} if setting.since else {}),
                    **({"accounting": True} if setting.needs_accounting else {}),
                    **({"unless_set": True} if setting.unless_set else {}),
                    **({"words": True} if name.lower() in word_lists() else {}),
                }
                for name, setting in self.handed_over.items()
            ],
            **({"default_partition": self.default_partition} if self.default_partition else {}),
        }


def slurm_configuration(cluster: Cluster, *, checks: bool | None = None) -> SlurmConfiguration:
    """What slurm.conf of the cluster says.

    Args:
        cluster: one with Slurm.
        checks: whether health checks of ours run on nodes, from prologs and between jobs; by default as the
            environment says.

    Raises:
        ValueError: the cluster has no Slurm.
    """
    settings = cluster.settings
    match settings:
        case ParallelCluster():
            version, way, why_not = parallelcluster_slurm_version(settings.version), "api", ""
        case Pcs():
            version, way, why_not = settings.slurm_version, "api", ""
        case HyperPodSlurm():
            version = hyperpod_slurm_versions()[0]
            why_not = settings.no_slurm_file
            way = "none" if why_not else "file"
        case _:
            raise ValueError(f"{cluster.name} has no Slurm: {cluster.traits.title}")
    conditions = has(cluster, checks=checks)
    facts = [row for row in slurm_settings() if cluster.traits.kind in row.who and row.when <= conditions]
    ours = {row.name: setting for row in facts if (setting := _setting(cluster, row, version))}
    return SlurmConfiguration(
        version=version,
        way=way,
        why_not=why_not,
        settings=_with_yours(ours, facts, settings.slurm_settings),
        cgroup=_cgroup(cluster, version),
        partitions={name: partition_settings(cluster, name) for name in cluster.partitions},
        default_partition=default_partition(cluster),
        nodes=node_lines(cluster),
    )


def _setting(cluster: Cluster, row: SettingFacts, version: str) -> Setting | None:
    """Ours or the service's; None where the cluster's Slurm does not know it yet."""
    who = row.who[cluster.traits.kind]
    # of HyperPod, whose images differ, nodes themselves leave out what is too new
    if row.since and version < row.since and not cluster.traits.hyperpod:
        return None
    if who not in ("ours", "keep"):
        return Setting(name=row.name, value=who, origin="service", why=row.why, source=row.source)
    value = row.value if row.value is not None else own_value(cluster, row.name)
    if not value:
        return None
    return Setting(
        name=row.name,
        value=value,
        origin="ultracluster",
        why=row.why,
        source=row.source,
        since=row.since if version < row.since else "",
        needs_accounting="accounting" in row.when or "teams" in row.when,
        unless_set=who == "keep",
    )


def _with_yours(
    ours: Mapping[str, Setting], facts: Sequence[SettingFacts], yours: SlurmSettings
) -> dict[str, Setting]:
    yours_by_key = {name.lower(): str(value) for name, value in yours.items()}
    leads = {row.name: row.lead for row in facts}
    # what of ours only holds together with what is yours now
    left_out = {
        name
        for name, setting in ours.items()
        if setting.origin == "ultracluster"
        and (_contradicted(name, yours_by_key) or _is_other(leads.get(name, ""), ours, yours_by_key))
    }
    merged = {
        name: setting
        for name, setting in ours.items()
        if name.lower() not in yours_by_key and name not in left_out
    }
    for name, value in yours.items():
        before = next((setting for key, setting in ours.items() if key.lower() == name.lower()), None)
        lost = [*_lost_words(before, str(value))] if before else []
        if gone := [setting for setting in left_out if before and leads.get(setting) == before.name]:
            lost.append(f"{', '.join(sorted(gone))} left out")
        merged[name] = Setting(
            name=name,
            value=str(value),
            origin="yours",
            why="orchestrator.slurm_settings",
            source="the environment file",
            needs_accounting=name.lower().startswith("accountingstorage"),
            note="; ".join(lost),
        )
    return merged


def _is_other(lead: str, ours: Mapping[str, Setting], yours_by_key: Mapping[str, str]) -> bool:
    """Whether the setting that one belongs to is not ours any more."""
    if not lead:
        return False
    value = yours_by_key.get(lead.lower())
    if value is None:
        return _contradicted(lead, yours_by_key)
    return lead not in ours or value.lower() != ours[lead].value.lower()


def _contradicted(name: str, yours_by_key: Mapping[str, str]) -> bool:
    """Whether a setting of yours excludes one of ours."""
    match name:
        case "PreemptType":
            # slurmctld ends with "PreemptType and PreemptMode values incompatible"
            return yours_by_key.get("preemptmode", "").upper() in ("OFF", "GANG")
        case "MetricsType":
            return (
                "privatedata" in yours_by_key
            )  # what is hidden in squeue would be served without a password
        case _:
            return False


def _lost_words(before: Setting, value: str) -> Iterator[str]:
    """What of ours your value does not have."""
    if before.origin == "service":
        return
    if before.name.lower() in word_lists():
        mine = {word.partition("=")[0].lower() for word in words(value)}
        gone = [word for word in words(before.value) if word.partition("=")[0].lower() not in mine]
        if gone:
            yield f"without {', '.join(gone)}"
    elif before.value.lower() != value.lower():
        yield f"instead of {before.value}"


def _cgroup(cluster: Cluster, version: str) -> dict[str, Setting]:
    kind = cluster.traits.kind
    ours = {
        row.name: own_setting
        for row in cgroup_settings()
        if kind in row.who and (own_setting := _setting(cluster, row, version))
    }
    yours = cluster.settings.cgroup_settings if isinstance(cluster.settings, Pcs) else {}
    own_keys = {name.lower() for name in yours}
    merged = {name: setting for name, setting in ours.items() if name.lower() not in own_keys}
    for name, value in yours.items():
        merged[name] = Setting(
            name=name,
            value=str(value),
            origin="yours",
            why="orchestrator.cgroup_settings",
            source="the environment file",
        )
    return merged

"""Slurm's settings in a plan: what slurm.conf says, and who says it."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.model import Cluster
from ultracluster.slurm.configuration import Origin, SlurmConfiguration, Way, slurm_configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettingPlan:
    """One setting."""

    name: str
    value: str
    """Empty where the service sets it to a value that is not published."""
    origin: Origin
    file: str
    """`slurm.conf` or `cgroup.conf`."""
    why: str
    note: str
    """What a setting of yours takes away, and where the nodes' own image decides; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPlan:
    """Slurm's configuration."""

    version: str
    """Slurm's release on the nodes; of several that it may be, the oldest."""
    way: Way
    """How settings get to the cluster: the service's API, a file on the controller, or not at all."""
    why_not: str
    """Why they do not."""
    default_partition: str
    settings: tuple[SlurmSettingPlan, ...]


def slurm_plan(cluster: Cluster) -> SlurmPlan | None:
    """None without Slurm."""
    if not cluster.traits.slurm:
        return None
    made = slurm_configuration(cluster)
    return SlurmPlan(
        version=made.version,
        way=made.way,
        why_not=made.why_not,
        default_partition=made.default_partition,
        settings=(*_settings(made, "slurm.conf"), *_settings(made, "cgroup.conf")),
    )


def slurm_lines(plan: SlurmPlan) -> list[str]:
    """In words: how settings get there, yours one by one with what they replace, and how many are ours."""
    lines: list[str] = []
    if plan.why_not:
        lines.append(f"none of ours: {plan.why_not}")
    elif plan.way == "file":
        lines.append("settings in a file on the controller, which slurm.conf includes")
    lines.append(f"jobs that name no partition go to {plan.default_partition or '?'}")
    lines += [
        f"yours: {setting.name}={setting.value}{f' ({setting.note})' if setting.note else ''}"
        for setting in plan.settings
        if setting.origin == "yours"
    ]
    ours = sum(setting.origin == "ultracluster" for setting in plan.settings)
    if ours:
        lines.append(f"{ours} settings of ours")
    return lines


def _settings(made: SlurmConfiguration, file: str) -> list[SlurmSettingPlan]:
    settings = made.settings if file == "slurm.conf" else made.cgroup
    return [
        SlurmSettingPlan(
            name=setting.name,
            value=setting.value,
            origin=setting.origin,
            file=file,
            why=setting.why,
            note=_note(setting.note, setting.since, setting.unless_set),
        )
        for setting in settings.values()
        if setting.origin == "service" or made.way != "none" or setting.origin == "yours"
    ]


def _note(note: str, since: str, unless_set: bool) -> str:
    parts = [note, f"from Slurm {since} on" if since else "", "unless the service has set it" * unless_set]
    return "; ".join(part for part in parts if part)


__all__ = ["SlurmPlan", "SlurmSettingPlan", "slurm_lines", "slurm_plan"]

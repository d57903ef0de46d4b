"""Rules on Slurm's settings: what its own parser and daemons refuse, for the releases that nodes boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.catalog.pcs import ConfigurationFile, SettingLevel, pcs_settings
from ultracluster.catalog.slurm import (
    hyperpod_slurm,
    hyperpod_slurm_versions,
    parallelcluster_slurm_version,
    service_settings,
    slurm_settings,
)
from ultracluster.catalog.slurm_refusals import (
    SlurmFile,
    slurm_defaults,
    slurm_releases,
)
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.remedy import Remedy, drop, rename, write
from ultracluster.config.slurm import GresRecord, Partition, SlurmSettings
from ultracluster.model import Group
from ultracluster.model.slurm_reading import Given, Refusal, refusals
from ultracluster.rules.engine import Breach, Breaches
from ultracluster.rules.sets import SLU, SLURM

DATE = "2026-11-28"
Slurm = HyperPodSlurm | ParallelCluster | Pcs
Part = Slurm | Partition | Group | GresRecord
_GRES_FIELDS = {"Count": "count", "File": "file", "MultipleFiles": "multiple_files"}
_PCS_LEVELS: Mapping[str, SettingLevel | ConfigurationFile] = {
    "slurm.conf": "cluster",
    "NodeName": "group",
    "PartitionName": "partition",
    "cgroup.conf": "cgroup",
    "slurmdbd.conf": "slurmdbd",
}
_DAEMONS: Mapping[str, str] = {"cgroup.conf": "slurmd", "gres.conf": "slurmd", "slurmdbd.conf": "slurmdbd"}


@SLU.error(
    46,
    "SchedMD/slurm, src/common/read_config.c, parse_config.c and src/slurmctld at the tag of each "
    "release; slurmctld 26.05.5 and 24.11.5 end with each row",
    DATE,
    kinds=SLURM,
)
def setting_accepted(part: Part, settings: Slurm) -> Breaches:
    """Slurm starts with each setting."""
    for path, one, releases in _found(part, settings):
        if one.ends and releases == _releases(settings):
            yield _breach(path, part, one, releases[-1])


@SLU.warning(47, "SchedMD/slurm, src/common/read_config.c at the tag of each release", DATE, kinds=SLURM)
def setting_accepted_by_releases(part: Part, settings: Slurm) -> Breaches:
    """Every release of Slurm that nodes may boot reads each setting."""
    for path, one, releases in _found(part, settings):
        if not one.ends:
            yield Breach(path, f"Slurm {releases[0]} ignores {one.key}: `{one.says.rstrip('.')}`.", drop())
        elif releases != _releases(settings):
            yield _breach(path, part, one, releases[-1])


def _releases(settings: Slurm) -> tuple[str, ...]:
    """Those that nodes may boot and that are known here, the oldest first."""
    match settings:
        case ParallelCluster():
            booted: tuple[str, ...] = (parallelcluster_slurm_version(settings.version),)
        case Pcs():
            booted = (settings.slurm_version,)
        case HyperPodSlurm():
            booted = hyperpod_slurm_versions()
    return tuple(release for release in booted if release in slurm_releases())


def _found(part: Part, settings: Slurm) -> Iterator[tuple[tuple[str, ...], Refusal, tuple[str, ...]]]:
    """Each refusal once, with the place of the setting and the releases that refuse it."""
    for field, file, given in _written(part):
        judged = {name: value for name, value in given.items() if not _reported(name, file, settings)}
        beside = _beside(settings) if file == "slurm.conf" else None
        by_key: dict[str, tuple[Refusal, list[str]]] = {}
        for release in _releases(settings):
            for one in refusals(file, judged, release, beside):
                if not one.rule and not (isinstance(settings, Pcs) and "unrecognized" in one.says):
                    _, releases = by_key.setdefault(one.key, (one, []))
                    if release not in releases:
                        releases.append(release)
        for key, (one, releases) in by_key.items():
            yield (field, key) if field else (_GRES_FIELDS[key],), one, tuple(releases)


def _written(part: Part) -> Iterator[tuple[str, SlurmFile, SlurmSettings]]:
    match part:
        case Group():
            yield "slurm_settings", "NodeName", part.settings.slurm_settings
        case Partition():
            yield "slurm_settings", "PartitionName", part.slurm_settings
        case GresRecord():
            yield "", "gres.conf", dict(part.line)
        case Pcs():
            yield "slurm_settings", "slurm.conf", part.slurm_settings
            yield "cgroup_settings", "cgroup.conf", part.cgroup_settings
            yield "slurmdbd_settings", "slurmdbd.conf", part.slurmdbd_settings
        case _:
            yield "slurm_settings", "slurm.conf", part.slurm_settings


def _reported(name: str, file: SlurmFile, settings: Slurm) -> bool:
    """Return whether another rule reports that the service does not take it."""
    match settings:
        case HyperPodSlurm():
            denied = {one.lower() for one in hyperpod_slurm().denied}
            return bool(settings.no_slurm_file) or file != "slurm.conf" or name.lower() in denied
        case ParallelCluster():
            level = {"slurm.conf": "cluster", "NodeName": "group", "PartitionName": "partition"}[file]
            return name.lower() in {setting.lower() for setting in parallelcluster().slurm_settings[level]}
        case Pcs():
            return file in _PCS_LEVELS and name not in pcs_settings(_PCS_LEVELS[file])


def _beside(settings: Slurm) -> Given:
    """The rest of slurm.conf: the service's values and Slurm's defaults; None for ours, which depend on
    the cluster, and for what is not published."""
    service = service_settings(settings.kind)
    known: dict[str, str | None] = dict(slurm_defaults()) if service.complete else {}
    for row in slurm_settings():
        if settings.kind in row.who:
            value = row.who[settings.kind]
            known[row.name.lower()] = value if value not in ("", "ours", "keep") else None
    return known | {name.lower(): value for name, value in service.settings.items()}


def _breach(path: tuple[str, ...], part: Part, one: Refusal, release: str) -> Breach:
    file = next((file for field, file, _ in _written(part) if field in ("", path[0])), "slurm.conf")
    daemon = _DAEMONS.get(file, "slurmctld")
    return Breach(path, f"{daemon} {release} does not start with it: `{one.says.rstrip('.')}`.", _remedy(one))


def _remedy(one: Refusal) -> Remedy:
    if one.name:
        return rename(one.name) | drop() if "unrecognized" in one.says else rename(one.name)
    if one.instead:
        return write(int(one.instead) if one.instead.isdigit() else one.instead) | drop()
    return drop()

"""Rules on: AWS PCS. Slurm settings: which parameters PCS takes, at which level, from which version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.catalog.pcs import SettingLevel, pcs_settings
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import anywhere, drop, rename, write
from ultracluster.rules.engine import Breach
from ultracluster.rules.pcs.groups import GUIDE, asked
from ultracluster.rules.sets import PCS

CUSTOM = f"{GUIDE}, Configuring custom Slurm settings in AWS PCS"
GRES = f"{GUIDE}, Configuring custom GRES settings in AWS PCS"
LEVELS: tuple[SettingLevel, ...] = ("cluster", "group", "partition")
_WORDS: Mapping[SettingLevel, str] = {"cluster": "a cluster", "group": "a node group", "partition": "a queue"}


def _settings(environment: Environment) -> Iterator[tuple[SettingLevel, Path, str, str]]:
    """Each setting of slurm.conf: level, path, name, value."""
    orchestrator = asked(environment)
    for key, value in orchestrator.slurm_settings.items():
        yield "cluster", ("orchestrator", "slurm_settings", key), key, str(value)
    for name, partition in orchestrator.partitions.items():
        for key, value in partition.slurm_settings.items():
            yield "partition", ("orchestrator", "partitions", name, "slurm_settings", key), key, str(value)
    for name, group in environment.node_groups.items():
        for key, value in group.slurm_settings.items():
            yield "group", ("node_groups", name, "slurm_settings", key), key, str(value)


@PCS.rule(40, "error", "PCS takes each Slurm setting at its level", source=CUSTOM)
def setting_refused(environment: Environment) -> Iterator[Breach]:
    for level, path, name, _ in _settings(environment):
        taken = pcs_settings(level)
        if name in taken:
            continue
        why = f"PCS does not take {name} for {_WORDS[level]}"
        if name.lower().startswith("topology"):
            why += "; it writes the topology itself, and for UltraServers alone"
        others: list[SettingLevel] = [one for one in LEVELS if one != level and name in pcs_settings(one)]
        near = taken.nearest(name)
        remedy = rename(near) | drop() if near else drop()
        if others:
            remedy = drop().noting(f"{name} in slurm_settings of {_PLACES[others[0]]}")
        yield Breach(path, f"{why}.", remedy)


_PLACES: Mapping[SettingLevel, str] = {
    "cluster": "orchestrator",
    "group": "the node group",
    "partition": "orchestrator.partitions.<name>",
}


@PCS.rule(42, "error", "Slurm's version has each setting", source=CUSTOM)
def setting_too_new(environment: Environment) -> Iterator[Breach]:
    version = asked(environment).slurm_version
    for level, path, name, value in _settings(environment):
        what, since = pcs_settings(level).since_of(name, value)
        if since > version:
            yield Breach(
                path,
                f"PCS takes {what} from Slurm {since} on, and this cluster has {version}.",
                anywhere({("orchestrator", "slurm_version"): since}) | drop(),
            )


@PCS.rule(43, "error", "Gres is left to us", source=GRES)
def own_gres(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        for key in group.slurm_settings:
            if key.lower() == "gres":
                yield Breach(
                    ("node_groups", name, "slurm_settings", key),
                    "PCS takes Gres together with custom GRES records (gresCustomSettings) of the same type "
                    "and number, and this configuration has no field for those: it writes both for the "
                    "GPUs, by orchestrator.gpu_types.",
                    drop(),
                )


@PCS.rule(
    44,
    "warning",
    "GPUs are named by type where that costs nothing",
    source=f"{GUIDE}, Configuring hardware topology in AWS PCS; {GRES}",
)
def types_hide_affinity(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.gpu_types and orchestrator.slurm_version >= "26.05":
        yield Breach(
            ("orchestrator", "gpu_types"),
            "from 26.05 on PCS detects GPUs with the cores that are near them, and our line with the type "
            "replaces that: jobs lose the affinity.",
            drop(),
        )


@PCS.rule(
    45, "error", "An exclusive partition does not share its nodes", source=f"{CUSTOM}; Slurm, slurm.conf"
)
def exclusive_twice(environment: Environment) -> Iterator[Breach]:
    for name, partition in asked(environment).partitions.items():
        for key, value in partition.slurm_settings.items():
            if key.lower() == "exclusive" and partition.exclusive:
                yield Breach(
                    ("orchestrator", "partitions", name, "slurm_settings", key),
                    f"{key}={value} stands beside OverSubscribe=EXCLUSIVE, which it replaces and which "
                    "`exclusive: true` writes.",
                    drop() | anywhere({("orchestrator", "partitions", name, "exclusive"): False}),
                )
            if key.lower() == "oversubscribe" and partition.exclusive and str(value).upper() != "EXCLUSIVE":
                yield Breach(
                    ("orchestrator", "partitions", name, "slurm_settings", key),
                    f"{key}={value} shares nodes between jobs, and the partition is exclusive.",
                    drop() | anywhere({("orchestrator", "partitions", name, "exclusive"): False}),
                )


@PCS.rule(
    46,
    "warning",
    "A QOS is there before a partition names it",
    source=f"{GUIDE}, Custom Slurm settings for AWS PCS queues",
    by_hand="sacctmgr show qos",
)
def qos_later(environment: Environment) -> Iterator[Breach]:
    for level, path, name, value in _settings(environment):
        if level == "partition" and name.lower() in _QOS:
            yield Breach(
                path,
                f"{name}={value}: PCS refuses a queue with a QOS that accounting does not have, and a new "
                "cluster has none of yours.",
                drop().noting("make the QOS with sacctmgr, then name it and acknowledge this"),
            )


_QOS = ("qos", "allowqos", "denyqos")


@PCS.rule(47, "error", "What needs accounting has it", source=f"{GUIDE}, Slurm accounting in AWS PCS")
def needs_accounting(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.accounting.mode == "standard":
        return
    asking = [
        path
        for level, path, name, _ in _settings(environment)
        if (level == "partition" and name.lower() in (*_QOS, "allowaccounts", "denyaccounts"))
        or (level == "cluster" and name.lower().startswith("accountingstorage"))
    ]
    asking += [("orchestrator", "slurmdbd_settings", key) for key in orchestrator.slurmdbd_settings]
    for path in asking:
        yield Breach(
            path,
            f"{path[-1]} is about accounting, which is off: PCS refuses it.",
            anywhere({("orchestrator", "accounting"): {"mode": "standard"}}) | drop(),
        )


@PCS.rule(48, "error", "MinJobAge is 5 or more", source=CUSTOM)
def job_age(environment: Environment) -> Iterator[Breach]:
    for level, path, name, value in _settings(environment):
        if level == "cluster" and name.lower() == "minjobage" and not (value.isdigit() and int(value) >= 5):
            yield Breach(path, f"MinJobAge={value}: PCS takes 5 seconds or more.", write(5))


@PCS.rule(49, "error", "A setting stands once", source="Slurm documentation, slurm.conf: names by any case")
def setting_twice(environment: Environment) -> Iterator[Breach]:
    seen: dict[tuple[Path, str], str] = {}
    for _, path, name, _ in _settings(environment):
        first = seen.setdefault((path[:-1], name.lower()), name)
        if first != name:
            yield Breach(path, f"{name} is {first} once more: Slurm does not tell them apart.", drop())

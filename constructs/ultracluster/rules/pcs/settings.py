"""Rules on: AWS PCS. Slurm settings: which parameters PCS takes, at which level, from which version."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog.pcs import ConfigurationFile, SettingLevel, pcs_settings
from ultracluster.catalog.slurm_refusals import SlurmFile, slurm_keys
from ultracluster.config.findings import YamlPath
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, drop, rename, write
from ultracluster.config.slurm import Partition, SlurmSettings
from ultracluster.model import Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import PCS_GUIDE

CUSTOM = f"{PCS_GUIDE}, Configuring custom Slurm settings in AWS PCS"
GRES = f"{PCS_GUIDE}, Configuring custom GRES settings in AWS PCS"
CGROUP = f"{PCS_GUIDE}, Configuring custom cgroup settings in AWS PCS"
SLURMDBD = f"{PCS_GUIDE}, Configuring custom SlurmDBD settings in AWS PCS"
LEVELS: tuple[SettingLevel, ...] = ("cluster", "group", "partition")
_WORDS: Mapping[SettingLevel, str] = {"cluster": "a cluster", "group": "a node group", "partition": "a queue"}


def _settings(part: Pcs | Partition | Group) -> tuple[SettingLevel, SlurmSettings]:
    """What a part adds to slurm.conf, and at which level."""
    match part:
        case Pcs():
            return "cluster", part.slurm_settings
        case Partition():
            return "partition", part.slurm_settings
        case Group():
            return "group", part.settings.slurm_settings


@PCS.error(40, CUSTOM)
def setting_refused(part: Pcs | Partition | Group) -> Breaches:
    """PCS accepts each Slurm parameter at its level."""
    level, given = _settings(part)
    taken = pcs_settings(level)
    for name in given:
        if name in taken:
            continue
        why = f"PCS does not take {name} for {_WORDS[level]}"
        if name.lower().startswith("topology"):
            why += "; it writes the topology itself, and only for UltraServers"
        others: list[SettingLevel] = [
            other for other in LEVELS if other != level and name in pcs_settings(other)
        ]
        # a parameter of Slurm's is none that was mistyped
        near = "" if name.lower() in slurm_keys(_FILES[level]) else taken.nearest(name)
        remedy = rename(near) | drop() if near else drop()
        if others:
            remedy = drop().noting(f"set {name} in slurm_settings of {_PLACES[others[0]]}")
        yield at("slurm_settings", name).breach(f"{why}.", remedy)


_FILES: Mapping[SettingLevel, SlurmFile] = {
    "cluster": "slurm.conf",
    "group": "NodeName",
    "partition": "PartitionName",
}
_PLACES: Mapping[SettingLevel, str] = {
    "cluster": "orchestrator",
    "group": "the node group",
    "partition": "orchestrator.partitions.<name>",
}


@PCS.error(42, CUSTOM)
def setting_too_new(part: Pcs | Partition | Group, settings: Pcs) -> Breaches:
    """The Slurm version has each parameter."""
    version = settings.slurm_version
    level, given = _settings(part)
    for name, value in given.items():
        what, since = pcs_settings(level).since_of(name, str(value))
        if since > version:
            yield at("slurm_settings", name).breach(
                f"PCS takes {what} from Slurm {since} on, and this cluster has {version}.",
                anywhere({("orchestrator", "slurm_version"): since}) | drop(),
            )


@PCS.warning(44, f"{PCS_GUIDE}, Configuring hardware topology in AWS PCS; {GRES}")
def gpu_types_hide_affinity(settings: Pcs) -> Breaches:
    """gpu_types is not set where Slurm detects the GPUs itself."""
    if settings.gpu_types and settings.slurm_version >= "26.05":
        yield at("gpu_types").breach(
            "from 26.05 on PCS detects GPUs together with the cores near them, and a line with the GPU type "
            "replaces that: jobs lose the affinity.",
            drop(),
        )


@PCS.error(45, f"{CUSTOM}; Slurm, slurm.conf")
def exclusive_partition(settings: Pcs) -> Breaches:
    """An exclusive partition does not share its nodes."""
    exclusive = {name: partition for name, partition in settings.partitions.items() if partition.exclusive}
    for name, partition in exclusive.items():
        for key, value in partition.slurm_settings.items():
            why = ""
            if key.lower() == "exclusive":
                why = (
                    "contradicts `exclusive: true`, which writes OverSubscribe=EXCLUSIVE, the parameter that "
                    "this one replaces"
                )
            elif key.lower() == "oversubscribe" and str(value).upper() != "EXCLUSIVE":
                why = "shares nodes between jobs, and the partition is exclusive"
            if why:
                yield at("partitions", name, "slurm_settings", key).breach(
                    f"{key}={value} {why}.",
                    drop() | anywhere({("orchestrator", "partitions", name, "exclusive"): False}),
                )


@PCS.warning(46, f"{PCS_GUIDE}, Custom Slurm settings for AWS PCS queues", by_hand="sacctmgr show qos")
def qos_exists(partition: Partition) -> Breaches:
    """A QOS exists before a partition names it."""
    for name, value in partition.slurm_settings.items():
        if name.lower() in _QOS:
            yield at("slurm_settings", name).breach(
                f"PCS refuses {name}={value} unless accounting has that QOS, and a new cluster has none of "
                "yours.",
                drop().noting("create the QOS with sacctmgr, then name it here and acknowledge this"),
            )


_QOS = ("qos", "allowqos", "denyqos")


@PCS.error(47, f"{PCS_GUIDE}, Slurm accounting in AWS PCS")
def settings_need_accounting(settings: Pcs) -> Breaches:
    """Accounting is on where settings require it."""
    if settings.accounting.mode == "standard":
        return
    asking: list[YamlPath] = [
        ("slurm_settings", name)
        for name in settings.slurm_settings
        if name.lower().startswith("accountingstorage")
    ]
    asking += [
        ("partitions", queue, "slurm_settings", name)
        for queue, partition in settings.partitions.items()
        for name in partition.slurm_settings
        if name.lower() in (*_QOS, "allowaccounts", "denyaccounts")
    ]
    asking += [("slurmdbd_settings", key) for key in settings.slurmdbd_settings]
    for path in asking:
        yield at(*path).breach(
            f"{path[-1]} requires accounting, which is off: PCS refuses it.",
            anywhere({("orchestrator", "accounting"): {"mode": "standard"}}) | drop(),
        )


@PCS.error(48, CUSTOM)
def job_age(settings: Pcs) -> Breaches:
    """MinJobAge is 5 or more."""
    for name, value in settings.slurm_settings.items():
        if name.lower() == "minjobage" and not (str(value).isdigit() and int(value) >= 5):
            yield at("slurm_settings", name).breach(
                f"MinJobAge={value} is too short: PCS takes 5 seconds or more.", write(5)
            )


@PCS.error(49, "Slurm documentation, slurm.conf: names by any case")
def setting_twice(part: Pcs | Partition | Group) -> Breaches:
    """No Slurm parameter is given twice (names ignore case)."""
    seen: dict[str, str] = {}
    for name in _settings(part)[1]:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield at("slurm_settings", name).breach(
                f"{name} is given already, as {first}: Slurm ignores the case of parameter names.", drop()
            )


@PCS.error(80, CGROUP, "2026-11-23")
def cgroup_refused(settings: Pcs) -> Breaches:
    """PCS accepts each parameter of cgroup.conf."""
    yield from _not_in_file("cgroup", settings.cgroup_settings)


@PCS.error(81, SLURMDBD, "2026-11-23")
def slurmdbd_refused(settings: Pcs) -> Breaches:
    """PCS accepts each parameter of slurmdbd.conf."""
    yield from _not_in_file("slurmdbd", settings.slurmdbd_settings)


def _not_in_file(file: ConfigurationFile, given: SlurmSettings) -> Breaches:
    taken = pcs_settings(file)
    for name in given:
        if name not in taken:
            near = taken.nearest(name)
            yield at(f"{file}_settings", name).breach(
                f"PCS does not take {name} of {file}.conf.", rename(near) | drop() if near else drop()
            )


@PCS.error(
    82,
    f"{CUSTOM} (HealthCheckNodeState, SlurmctldParameters); {PCS_GUIDE}, Slurm metrics in AWS PCS",
    "2026-11-23",
)
def settings_exclude(settings: Pcs) -> Breaches:
    """Slurm parameters that exclude each other are not set together."""
    given = {name.lower(): (name, str(value)) for name, value in settings.slurm_settings.items()}
    yield from _reboot_only(given)
    yield from _step_manager(given)
    yield from _own_metrics(given)


_Given = Mapping[str, tuple[str, str]]
"""Name and value as written, by the name in small letters."""


def _words(given: _Given, name: str) -> set[str]:
    return {word.strip().lower() for word in given.get(name, ("", ""))[1].strip('"').split(",")} - {""}


def _reboot_only(given: _Given) -> Breaches:
    words = _words(given, "healthchecknodestate")
    if "reboot_only" in words and len(words) > 1:
        name, value = given["healthchecknodestate"]
        yield at("slurm_settings", name).breach(
            f"{name}={value}: REBOOT_ONLY runs the program after a reboot only, and PCS takes it alone.",
            write("REBOOT_ONLY"),
        )


def _step_manager(given: _Given) -> Breaches:
    flags = _words(given, "prologflags")
    if "enable_stepmgr" in _words(given, "slurmctldparameters") and flags and "contain" not in flags:
        name, value = given["prologflags"]
        yield at("slurm_settings", name).breach(
            f"enable_stepmgr requires PrologFlags that contain Contain, and PCS refuses it with {value}.",
            drop() | write("Alloc,Contain"),
        )


def _own_metrics(given: _Given) -> Breaches:
    if "metricstype" not in given:
        return
    if "privatedata" in given:
        yield at("slurm_settings", given["privatedata"][0]).breach(
            "Slurm's metrics are served without a password, and PCS does not take them with PrivateData.",
            drop(),
        )
    if "communicationparameters" in given and "enable_http" not in _words(given, "communicationparameters"):
        name, value = given["communicationparameters"]
        yield at("slurm_settings", name).breach(
            f"MetricsType requires enable_http, which {name}={value} does not contain.",
            write(f"{value},enable_http".strip(",")),
        )

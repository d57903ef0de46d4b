"""Values of slurm.conf that depend on the cluster."""

from __future__ import annotations

import re

from ultracluster.catalog.slurm import hyperpod_slurm
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.pcs import PROLOG
from ultracluster.config.slurm import PROLOG_FLAGS, SlurmSettings
from ultracluster.model import Cluster
from ultracluster.model.gpu_checks import GPU_CHECK_SECONDS, checks_gpus

EPILOG = "/opt/ultracluster/epilog"
_WEEK = 7 * 24 * 60
_QUEUE_DEPTH = 500
"""Slurm's own bf_max_job_test: jobs that backfill looks at in one cycle."""
_IMEX_MESSAGE_TIMEOUT = 240
_MESSAGE_TIMEOUT = 60
_SLURM_MESSAGE_TIMEOUT = 10


def has(cluster: Cluster, *, checks: bool | None = None) -> frozenset[str]:
    """The conditions of `catalog/slurm.json` that hold."""
    mode = cluster.environment.health.mode
    checked = mode != "off" if checks is None else checks
    # The nodes of a PCS cluster that runs have none of our programs until each is replaced, and slurmd drains
    # a node that lacks its prolog: a dry run names none, and lays them there for the day of `enforce`.
    # Elsewhere a node without our scripts does nothing.
    around = checked and (not isinstance(cluster.settings, Pcs) or checks is True or mode == "enforce")
    conditions = {
        "accounting": accounted(cluster),
        "teams": accounted(cluster) and bool(cluster.environment.teams),
        "checks": checked and cluster.runs_scripts,
        "around_jobs": around and cluster.runs_scripts,
        "prolog": cluster.runs_scripts and (around or _imex_prolog(cluster)),
        "gpus": any(
            group.type is not None
            and group.type.accelerator is not None
            and group.type.accelerator.manufacturer == "NVIDIA"
            for group in cluster.with_role("compute").values()
        ),
        "metrics": True,
        "tree": not _has_imex(cluster) and not _flat(cluster),
    }
    return frozenset(name for name, holds in conditions.items() if holds)


def accounted(cluster: Cluster) -> bool:
    """Whether Slurm keeps accounts: HyperPod's image does, PCS unless it is told not to, ParallelCluster
    with a database."""
    if isinstance(cluster.settings, ParallelCluster):
        return cluster.environment.storage.accounting_database is not None
    return cluster.keeps_accounts


def ultraservers(cluster: Cluster) -> bool:
    """Whether jobs have NVLink between nodes by a prolog of ours."""
    match cluster.settings:
        case ParallelCluster():
            return cluster.settings.imex and _has_imex(cluster)
        case Pcs():
            return cluster.settings.imex and cluster.runs_scripts and _has_imex(cluster)
        case _:
            return False


def own_value(cluster: Cluster, name: str) -> str:
    """The value of a setting that the facts leave to the cluster; empty where it has none.

    Raises:
        KeyError: a setting that is not known here.
    """
    match name:
        case "SchedulerParameters":
            return ",".join(_scheduler_parameters(cluster))
        case "PrologFlags":
            return _prolog_flags(cluster)
        case "Prolog":
            return _program(cluster, PROLOG)
        case "Epilog":
            return _program(cluster, EPILOG)
        case "PrologEpilogTimeout":
            return _prolog_seconds(cluster)
        case "MessageTimeout":
            return str(_message_timeout(cluster))
        case "UnkillableStepTimeout":
            return str(max(300, 5 * _message_timeout(cluster)))
        case _:
            raise KeyError(name)


def minutes(limit: str) -> int | None:
    """Minutes of one of Slurm's time limits, `7-00:00:00`, `90`, `12:00:00`; None for no limit and for what
    is not a time."""
    text = limit.strip().strip('"')
    if match := re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?::(\d+))?", text):
        days, hours, mins, secs = (int(part or 0) for part in match.groups())
        return days * 1440 + hours * 60 + mins + (secs > 0)
    if match := re.fullmatch(r"(\d+):(\d+):(\d+)", text):
        hours, mins, secs = map(int, match.groups())
        return hours * 60 + mins + (secs > 0)
    if match := re.fullmatch(r"(\d+)(?::(\d+))?", text):
        return int(match[1]) + (int(match[2] or 0) > 0)
    return None


def value_of(settings: SlurmSettings, name: str) -> str | None:
    """A setting by its name in any case."""
    return next((str(value) for key, value in settings.items() if key.lower() == name.lower()), None)


def _scheduler_parameters(cluster: Cluster) -> list[str]:
    window = _window(cluster)
    nodes = sum(group.most_nodes for group in cluster.with_role("compute").values())
    parameters = ["bf_continue", f"bf_window={window}"]
    if window > 2 * 1440:  # "if the value of bf_window is increased, then ... also increase bf_resolution"
        parameters.append(f"bf_resolution={300 if window <= _WEEK else 600}")
    if (depth := 4 * nodes) > _QUEUE_DEPTH:
        parameters.append(f"bf_max_job_test={min(depth, 5000)}")
    parameters += ["nohold_on_prolog_fail", "requeue_delay=30"]
    if not isinstance(cluster.settings, Pcs):  # which writes a topology for UltraServers only
        # seconds that a job may wait for `--switches=1`; Slurm's own five minutes end most of the waits
        parameters.append("max_switch_wait=86400")
    if isinstance(cluster.settings, HyperPodSlurm):
        parameters.append(hyperpod_slurm().required_words["SchedulerParameters"])
    return parameters


def _window(cluster: Cluster) -> int:
    """Minutes that a job may run at the most; a week where a partition has no limit, and a day at the least,
    which is Slurm's own."""
    settings = cluster.settings
    limits: list[int] = []
    if isinstance(settings, ParallelCluster | Pcs):
        for name in cluster.partitions:
            partition = settings.partitions.get(name)
            limit = value_of(partition.slurm_settings, "MaxTime") if partition else None
            limits.append((minutes(limit) if limit else None) or _WEEK)
    return min(max([1440, *(limits or [_WEEK])]), 30 * 1440)


def _prolog_flags(cluster: Cluster) -> str:
    if ultraservers(cluster):
        return PROLOG_FLAGS
    if _has_imex(cluster):
        return ""  # without our prolog for them, the domain is someone else's to set up
    return "Alloc,Contain,DeferBatch"


def _prolog_seconds(cluster: Cluster) -> str:
    if checks_gpus(cluster):
        return str(GPU_CHECK_SECONDS)
    # the IMEX prolog waits for the nodes of its domain
    return "600" if ultraservers(cluster) else "180"


def _program(cluster: Cluster, path: str) -> str:
    """On HyperPod a file beside slurm.conf, which nodes get together with it, and which starts the program:
    nodes take jobs before our scripts have finished there, and a program that is missing drains a node."""
    name = path.rpartition("/")[2]
    return f"ultracluster_{name}" if isinstance(cluster.settings, HyperPodSlurm) else path


def _message_timeout(cluster: Cluster) -> int:
    settings = cluster.settings
    if isinstance(settings, ParallelCluster | HyperPodSlurm):
        yours = value_of(settings.slurm_settings, "MessageTimeout")
        if yours and yours.isdigit():
            return int(yours)
        return _IMEX_MESSAGE_TIMEOUT if ultraservers(cluster) else _MESSAGE_TIMEOUT
    return _SLURM_MESSAGE_TIMEOUT  # PCS takes no other


def _flat(cluster: Cluster) -> bool:
    return isinstance(cluster.settings, ParallelCluster) and cluster.settings.topology == "flat"


def _imex_prolog(cluster: Cluster) -> bool:
    return isinstance(cluster.settings, Pcs) and ultraservers(cluster)


def _has_imex(cluster: Cluster) -> bool:
    return any(
        group.type is not None and group.type.imex is True for group in cluster.with_role("compute").values()
    )

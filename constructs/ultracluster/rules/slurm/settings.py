"""Rules on Slurm's settings: what the service keeps to itself, and what slurmctld does not start with."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.slurm import hyperpod_slurm, words
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.remedy import anywhere, drop, write
from ultracluster.config.slurm import SlurmSettings
from ultracluster.config.storage import Storage
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import new_database
from ultracluster.rules.sets import HPS, PCL, SLU, SLURM

DATE = "2026-11-22"
MANUAL = "slurm.conf manual, Slurm 26.05"
_TRIED = f"{MANUAL}; slurmctld 26.05.5 and 22.05.8 end with it"

Slurm = HyperPodSlurm | ParallelCluster | Pcs


@SLU.error(
    1,
    "SageMaker Developer Guide, SageMaker HyperPod FAQs; awslabs/awsome-distributed-ai, "
    "hyperpod-mental-model.md",
    DATE,
    kinds=HPS.kinds,
)
def settings_of_agent(hyperpod: HyperPodSlurm) -> Breaches:
    """slurm_settings leave out what HyperPod's agent keeps to itself."""
    instead = {name.lower(): (name, text) for name, text in hyperpod_slurm().denied.items()}
    for key in hyperpod.slurm_settings:
        if key.lower() in instead:
            name, text = instead[key.lower()]
            yield at("slurm_settings", key).breach(
                f"{name} belongs to HyperPod: another value breaks its agents, auto-resume or its updates.",
                drop().noting(text.removeprefix("remove it: ")),
            )


@SLU.error(2, "SageMaker Developer Guide, Migrating to API-driven Slurm configuration", DATE, kinds=HPS.kinds)
def settings_reach_controller(hyperpod: HyperPodSlurm) -> Breaches:
    """slurm_settings reach the controller."""
    if hyperpod.slurm_settings and hyperpod.no_slurm_file:
        none = hyperpod.lifecycle == "none"
        yield at("slurm_settings").breach(
            f"{hyperpod.no_slurm_file}, and the settings would have no effect.",
            anywhere(
                {("orchestrator", "lifecycle"): "on-init-complete"}
                if none
                else {("orchestrator", "slurm_config_strategy"): "merge"}
            )
            | drop(),
        )


@SLU.error(3, f"{MANUAL}: names by any case", DATE, kinds=SLURM)
def parameter_unique(settings: HyperPodSlurm | ParallelCluster) -> Breaches:
    # PCS049 says it of every level of PCS
    """No parameter of slurm.conf is given twice (names ignore case)."""
    seen: dict[str, str] = {}
    for name in settings.slurm_settings:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield at("slurm_settings", name).breach(
                f"{name} is given already, as {first}: Slurm ignores the case of parameter names.", drop()
            )


@SLU.error(4, f"{_TRIED}: `NoHold cannot be combined with Contain and/or X11`", DATE, kinds=SLURM)
def prolog_flags(settings: Slurm) -> Breaches:
    """PrologFlags hold together."""
    for key, value in _named(settings.slurm_settings, "PrologFlags"):
        flags = {flag.lower() for flag in words(value)}
        if "nohold" in flags and flags & {"contain", "x11", "runinjob"}:
            kept = ",".join(flag for flag in words(value) if flag.lower() != "nohold")
            yield at("slurm_settings", key).breach(
                f"{value} combines NoHold with Contain, X11 or RunInJob, which wait for the prolog: "
                "slurmctld does not start.",
                write(kept).noting("or, on UltraServers, Alloc,NoHold"),
            )


@SLU.error(5, f"{_TRIED}: `PreemptType and PreemptMode values incompatible`", DATE, kinds=SLURM)
def preemption(settings: Slurm, cluster: Cluster) -> Breaches:
    """PreemptType and PreemptMode hold together."""
    given = {name.lower(): (name, str(value).lower()) for name, value in settings.slurm_settings.items()}
    ours = bool(cluster.environment.teams)
    kind = given.get("preempttype", ("PreemptType", "preempt/qos" if ours else "preempt/none"))
    own_mode = "preemptmode" in given
    # ours falls with a type that is not ours
    with_ours = ours and kind[1] == "preempt/qos" and not own_mode
    mode = given.get("preemptmode", ("PreemptMode", "requeue" if with_ours else "off"))
    if ours and "preempttype" not in given and mode[1] in ("off", "gang"):
        return  # ours is left out then
    preempts = mode[1] not in ("off", "gang")
    if (kind[1] != "preempt/none") != preempts:
        key = (mode if own_mode else kind)[0]
        remedy = write("REQUEUE") if own_mode and not preempts else drop()
        if not own_mode:
            remedy = anywhere({("orchestrator", "slurm_settings", "PreemptMode"): "REQUEUE"}) | drop()
        yield at("slurm_settings", key).breach(
            f"PreemptType={kind[1]} with PreemptMode={mode[1].upper()}: slurmctld does not start.", remedy
        )


@SLU.warning(6, f"{MANUAL}, UnkillableStepTimeout", DATE, kinds=SLURM)
def unkillable_step_timeout(settings: Slurm) -> Breaches:
    """UnkillableStepTimeout is at least five times MessageTimeout."""
    message = next((value for _, value in _named(settings.slurm_settings, "MessageTimeout")), "")
    seconds = int(message) if message.isdigit() else 10 if isinstance(settings, Pcs) else 60
    for key, value in _named(settings.slurm_settings, "UnkillableStepTimeout"):
        if value.isdigit() and int(value) < 5 * seconds:
            yield at("slurm_settings", key).breach(
                f"{value} seconds are less than five times MessageTimeout ({seconds}): nodes whose processes "
                "end late are drained (`Kill task failed`).",
                write(5 * seconds),
            )


@SLU.error(
    7,
    "slurmctld 26.05.5 ends with it: `slurmdbd is required to run with TRES gres/gpu`",
    DATE,
    kinds=PCL.kinds,  # HyperPod's image has accounting, PCS047 is about PCS
)
def gpu_accounting(settings: ParallelCluster, storage: Storage, cluster: Cluster) -> Breaches:
    """GPUs are counted where there is accounting."""
    if storage.accounting_database is not None:
        return
    for key, value in _named(settings.slurm_settings, "AccountingStorageTRES"):
        yield at("slurm_settings", key).breach(
            f"{value} requires slurmdbd, and without a database ParallelCluster runs none: slurmctld does "
            "not start.",
            drop() | new_database(cluster),
        )


def _named(settings: SlurmSettings, name: str) -> Iterator[tuple[str, str]]:
    """The setting of a name in any case, as it is written."""
    for key, value in settings.items():
        if key.lower() == name.lower():
            yield key, str(value)

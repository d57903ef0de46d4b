"""Rules on Slurm's settings: what the service keeps to itself, and what slurmctld does not start with."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.slurm import hyperpod_slurm, words
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.remedy import anywhere, drop, write
from ultracluster.config.slurm import SlurmSettings
from ultracluster.config.storage import Storage
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.remedies import new_database
from ultracluster.rules.sets import HPS, PCL, SLU, SLURM

DATE = "2026-11-22"
MANUAL = "slurm.conf manual, Slurm 26.05"
_TRIED = f"{MANUAL}; slurmctld 26.05.5 and 22.05.8 end with it"

Slurm = HyperPodSlurm | ParallelCluster | Pcs


@SLU.rule(
    1,
    "error",
    "slurm_settings leave out what HyperPod's agent keeps to itself",
    source="SageMaker Developer Guide, SageMaker HyperPod FAQs; awslabs/awsome-distributed-ai, "
    "hyperpod-mental-model.md",
    date=DATE,
    kinds=HPS.kinds,
)
def denied(hyperpod: HyperPodSlurm) -> Iterator[Breach]:
    instead = {name.lower(): (name, text) for name, text in hyperpod_slurm().denied.items()}
    for key in hyperpod.slurm_settings:
        if key.lower() in instead:
            name, text = instead[key.lower()]
            yield Breach(
                ("slurm_settings", key),
                f"{name} belongs to HyperPod: another value breaks its agents, auto-resume or its updates.",
                drop().noting(text.removeprefix("remove it: ")),
            )


@SLU.rule(
    2,
    "error",
    "slurm_settings reach the controller",
    source="SageMaker Developer Guide, Migrating to API-driven Slurm configuration",
    date=DATE,
    kinds=HPS.kinds,
)
def no_file(hyperpod: HyperPodSlurm) -> Iterator[Breach]:
    if hyperpod.slurm_settings and hyperpod.no_slurm_file:
        none = hyperpod.lifecycle == "none"
        yield Breach(
            ("slurm_settings",),
            f"{hyperpod.no_slurm_file}, and the settings would have no effect.",
            anywhere(
                {("orchestrator", "lifecycle"): "on-init-complete"}
                if none
                else {("orchestrator", "slurm_config_strategy"): "merge"}
            )
            | drop(),
        )


@SLU.rule(
    3,
    "error",
    "No parameter of slurm.conf is given twice (names ignore case)",
    source=f"{MANUAL}: names by any case",
    date=DATE,
    kinds=SLURM,
)
def twice(settings: HyperPodSlurm | ParallelCluster) -> Iterator[Breach]:
    # PCS049 says it of every level of PCS
    seen: dict[str, str] = {}
    for name in settings.slurm_settings:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield Breach(
                ("slurm_settings", name),
                f"{name} is given already, as {first}: Slurm ignores the case of parameter names.",
                drop(),
            )


@SLU.rule(
    4,
    "error",
    "PrologFlags hold together",
    source=f"{_TRIED}: `NoHold cannot be combined with Contain and/or X11`",
    date=DATE,
    kinds=SLURM,
)
def prolog_flags(settings: Slurm) -> Iterator[Breach]:
    for key, value in _named(settings.slurm_settings, "PrologFlags"):
        flags = {flag.lower() for flag in words(value)}
        if "nohold" in flags and flags & {"contain", "x11", "runinjob"}:
            kept = ",".join(flag for flag in words(value) if flag.lower() != "nohold")
            yield Breach(
                ("slurm_settings", key),
                f"{value} combines NoHold with Contain, X11 or RunInJob, which wait for the prolog: "
                "slurmctld does not start.",
                write(kept).noting("or, on UltraServers, Alloc,NoHold"),
            )


@SLU.rule(
    5,
    "error",
    "PreemptType and PreemptMode hold together",
    source=f"{_TRIED}: `PreemptType and PreemptMode values incompatible`",
    date=DATE,
    kinds=SLURM,
)
def preemption(settings: Slurm, cluster: Cluster) -> Iterator[Breach]:
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
        yield Breach(
            ("slurm_settings", key),
            f"PreemptType={kind[1]} with PreemptMode={mode[1].upper()}: slurmctld does not start.",
            remedy,
        )


@SLU.rule(
    6,
    "warning",
    "UnkillableStepTimeout is at least five times MessageTimeout",
    source=f"{MANUAL}, UnkillableStepTimeout",
    date=DATE,
    kinds=SLURM,
)
def unkillable(settings: Slurm) -> Iterator[Breach]:
    message = next((value for _, value in _named(settings.slurm_settings, "MessageTimeout")), "")
    seconds = int(message) if message.isdigit() else 10 if isinstance(settings, Pcs) else 60
    for key, value in _named(settings.slurm_settings, "UnkillableStepTimeout"):
        if value.isdigit() and int(value) < 5 * seconds:
            yield Breach(
                ("slurm_settings", key),
                f"{value} seconds are less than five times MessageTimeout ({seconds}): nodes whose processes "
                "end late are drained (`Kill task failed`).",
                write(5 * seconds),
            )


@SLU.rule(
    7,
    "error",
    "GPUs are counted where there is accounting",
    source="slurmctld 26.05.5 ends with it: `slurmdbd is required to run with TRES gres/gpu`",
    date=DATE,
    kinds=PCL.kinds,  # HyperPod's image has accounting, PCS047 is about PCS
)
def counted_without_accounting(
    settings: ParallelCluster, storage: Storage, cluster: Cluster
) -> Iterator[Breach]:
    if storage.accounting_database is not None:
        return
    for key, value in _named(settings.slurm_settings, "AccountingStorageTRES"):
        yield Breach(
            ("slurm_settings", key),
            f"{value} requires slurmdbd, and without a database ParallelCluster runs none: slurmctld does "
            "not start.",
            drop() | new_database(cluster),
        )


def _named(settings: SlurmSettings, name: str) -> Iterator[tuple[str, str]]:
    """The setting of a name in any case, as it is written."""
    for key, value in settings.items():
        if key.lower() == name.lower():
            yield key, str(value)

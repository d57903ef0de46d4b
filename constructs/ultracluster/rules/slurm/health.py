"""Rules on: `health:`, what is done about faulty nodes."""

from __future__ import annotations

import difflib
import json

from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import ask, drop, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HPS, KUBERNETES, PCL, PCS, SLU
from ultracluster.scripts_folder import scripts_folder

DATE = "2026-11-22"
WATCHED = ("kernel", "sxid", "xid")
"""What the watcher of the kernel's log calls its findings."""
_OURS = {
    "Prolog": "before jobs",
    "Epilog": "after failed jobs",
    "HealthCheckProgram": "between jobs",
}


@SLU.error(
    40,
    "this package: on Kubernetes the EKS node monitoring agent and HyperPod's health monitoring agent "
    "find faults, and the services repair nodes (Amazon EKS User Guide, node health)",
    DATE,
    kinds=KUBERNETES,
)
def health_checks_need_slurm(environment: Environment) -> Breaches:
    """Only Slurm nodes have our health checks."""
    if "health" in environment.model_fields_set and environment.health.mode != "off":
        yield at("health").breach(
            "`health` is about nodes of Slurm. On Kubernetes the agents of the service look after nodes: "
            "`orchestrator.node_recovery` (HyperPod) and node repair (EKS).",
            drop(),
        )


@SLU.error(41, "this package: lifecycle_scripts/health, and its faults.json", DATE)
def checks_and_faults_exist(environment: Environment) -> Breaches:
    """Checks and faults that are left out exist."""
    known = check_names()
    ignored = environment.health.ignore
    rows = fault_rows() if set(ignored) - set(known) else []
    for index, name in enumerate(ignored):
        if name not in (*known, *rows):
            nearest = difflib.get_close_matches(name, [*known, *rows], 1, 0)
            yield at("health", "ignore", index).breach(
                f"there is no check `{name}`: the checks are {', '.join(known)}; single faults are the rows "
                "of docs/faults.md.",
                write(nearest[0]),
            )


@SLU.warning(
    42,
    "SageMaker Developer Guide, automatic node recovery and auto-resume (NodeRecovery Automatic)",
    DATE,
    kinds=HPS.kinds,
)
def hyperpod_repairs_nodes(environment: Environment, settings: HyperPodSlurm) -> Breaches:
    """HyperPod repairs the nodes that our checks take out."""
    if environment.health.mode == "enforce" and settings.node_recovery == "none":
        yield at("orchestrator", "node_recovery").breach(
            "nodes with a fault are drained, and nobody reboots or replaces them: HyperPod does nothing for "
            "a node in state FAIL where `node_recovery` is `none`.",
            write("automatic"),
        )


@SLU.warning(
    43,
    "aws/aws-parallelcluster-node, slurm_plugin/clustermgtd.py (terminate_drain_nodes, by default on)",
    DATE,
    kinds=PCL.kinds,
)
def parallelcluster_replaces_nodes(environment: Environment) -> Breaches:
    """ParallelCluster replaces what is drained."""
    health = environment.health
    if health.mode == "enforce" and not health.replace:
        yield at("health", "replace").breach(
            "ParallelCluster terminates a node that is drained and has no job within a minute or two, "
            "whatever `replace` says.",
            write(True),
        )


@SLU.warning(
    44,
    "slurm.conf manual (Prolog, Epilog, HealthCheckProgram)",
    DATE,
    kinds=(PCL.kinds or frozenset()) | (PCS.kinds or frozenset()),
)
def slurm_runs_checks(environment: Environment, settings: ParallelCluster | Pcs) -> Breaches:
    """Slurm's own programs run our checks."""
    if environment.health.mode == "off":
        return
    # ParallelCluster has its own prolog and epilog, and refuses others.
    ours = _OURS if isinstance(settings, Pcs) else {"HealthCheckProgram": _OURS["HealthCheckProgram"]}
    for key in settings.slurm_settings:
        when = next((when for name, when in ours.items() if name.lower() == key.lower()), "")
        value = str(settings.slurm_settings[key])
        if when and not value.startswith("/opt/ultracluster/"):
            yield at("orchestrator", "slurm_settings", key).breach(
                f"your own `{key}` takes the place of ours: nodes are not checked {when}.",
                drop() | ask("action", f"let {value.split()[0]} call ours, and acknowledge this"),
            )


@SLU.warning(
    45,
    "Red Hat, RHEL 8: python3 is 3.6, without security updates since December 2021; this package's "
    "programs for nodes are written for 3.9 and newer",
    DATE,
    kinds=PCL.kinds,
)
def python_version(environment: Environment, settings: ParallelCluster) -> Breaches:
    """The nodes' Python runs our programs."""
    if settings.os not in ("rhel8", "rocky8"):
        return
    lost = [
        words
        for words, asked in (
            ("no node is checked", environment.health.mode != "off"),
            ("no account of `users` is made", bool(environment.users)),
            ("Slurm does not learn of the teams", bool(environment.teams)),
        )
        if asked
    ]
    if lost:
        yield at("orchestrator", "os").breach(
            f"`python3` of {settings.os} is 3.6, too old for our programs: {', '.join(lost)}.",
            write(settings.os.replace("8", "9")),
        )


def check_names() -> list[str]:
    """The checks of the health folder, and what the watcher of the kernel's log finds."""
    return sorted({*WATCHED, *(file.stem for file in (scripts_folder() / "health").glob("*.sh"))})


def fault_rows() -> list[str]:
    """The rows of the table of faults."""
    table = json.loads((scripts_folder() / "health/faults.json").read_text(encoding="utf-8"))
    return [row["id"] for row in table["faults"]]

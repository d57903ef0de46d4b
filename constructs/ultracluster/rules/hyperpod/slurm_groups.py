"""Rules on: HyperPod with Slurm. Node groups: what they have that no other orchestrator has."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import DROP, anywhere, drop, write
from ultracluster.model.partitions import own_partition
from ultracluster.rules.engine import Breach
from ultracluster.rules.groups.roles import GETTING_STARTED
from ultracluster.rules.hyperpod.types import PATCHING
from ultracluster.rules.sets import HPS


def asked(environment: Environment) -> HyperPodSlurm:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, HyperPodSlurm)
    return environment.orchestrator


@HPS.rule(
    3,
    "warning",
    "There is at most one login group",
    source=f"{GETTING_STARTED}, provisioning_parameters.json (one `login_group`); the API names no limit",
    date="2026-11-22",
)
def one_login_group(environment: Environment) -> Iterator[Breach]:
    logins = environment.groups("login")
    first, *others = logins or [""]
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is a login group, too. AWS documents clusters with one, and its older configuration "
            "file has room for one only; nothing says that two are refused or that they work.",
            anywhere(
                {
                    ("node_groups", first, "count"): logins[first].count + logins[name].count,
                    ("node_groups", name): DROP,
                }
            ),
        )


@HPS.rule(
    7,
    "warning",
    "No partition is called `dev`",
    source=f"{GETTING_STARTED}; awslabs/awsome-distributed-ai, hyperpod-mental-model.md",
    by_hand="scontrol show partition dev",
)
def partition_dev(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition == "dev":
            yield Breach(
                ("node_groups", name, "partition"),
                "HyperPod puts every compute node, and login nodes with them, into a default "
                "partition `dev` of its own: this group would not have the partition to itself.",
                write(own_partition(name)),
            )


@HPS.rule(
    54,
    "warning",
    "The controller is patched by hand",
    source=f"{PATCHING}: root volumes are replaced",
)
def patching_controller(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("controller").items():
        if group.patching:
            more = (
                ""
                if environment.storage.accounting_database
                else " Accounting is on that volume, too, as there is no accounting_database."
            )
            yield Breach(
                ("node_groups", name, "patching"),
                "patching replaces the root volume of the controller: the queue's state and hand "
                f"edits of slurm.conf are gone unless someone saved them before.{more}",
                drop().noting("save /opt/slurm/etc and update the software by hand"),
            )

"""Rules on HyperPod with Slurm: what its node groups have and those of other orchestrators do not."""

from __future__ import annotations

from ultracluster.config.remedy import DROP, anywhere, drop, write
from ultracluster.config.storage import Storage
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.groups.roles import GETTING_STARTED, own_partition
from ultracluster.rules.hyperpod.types import PATCHING
from ultracluster.rules.sets import HPS


@HPS.warning(
    3,
    f"{GETTING_STARTED}, provisioning_parameters.json (one `login_group`); the API names no limit",
    "2026-11-22",
)
def one_login_group(cluster: Cluster) -> Breaches:
    """There is at most one login group."""
    logins = cluster.with_role("login")
    first, *others = logins or [""]
    for name in others:
        count = logins[first].settings.count + logins[name].settings.count
        yield at("node_groups", name, "role").breach(
            f"`{first}` is also a login group. AWS documents clusters with one, and its older configuration "
            "file has room for only one; whether two are refused or work is not documented.",
            anywhere({("node_groups", first, "count"): count, ("node_groups", name): DROP}),
        )


@HPS.warning(
    7,
    f"{GETTING_STARTED}; awslabs/awsome-distributed-ai, hyperpod-mental-model.md",
    by_hand="scontrol show partition dev",
)
def partition_dev_taken(group: Group) -> Breaches:
    """No partition is named `dev`."""
    if group.partition == "dev":
        yield at("partition").breach(
            "HyperPod puts every compute node and login node into its default partition `dev`: this "
            "group would not have the partition to itself.",
            write(own_partition(group.name)),
        )


@HPS.warning(54, f"{PATCHING}: root volumes are replaced")
def controller_patching(group: Group, storage: Storage) -> Breaches:
    """The controller is patched by hand."""
    if group.role == "controller" and group.settings.patching:
        more = (
            ""
            if storage.accounting_database
            else " Accounting is also on that volume, as there is no accounting_database."
        )
        yield at("patching").breach(
            "patching replaces the root volume of the controller: the state of the queue and hand edits "
            f"of slurm.conf are lost unless they were saved before.{more}",
            drop().noting("save /opt/slurm/etc and update the software by hand"),
        )

"""Rules on: several Lustre file systems in one environment, and the node groups that mount each."""

from __future__ import annotations

import difflib
from itertools import pairwise

from ultracluster.catalog.fsx import limits, lustre
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.remedy import DROP, anywhere, ask, drop, write
from ultracluster.config.storage import (
    FIRST_LUSTRE,
    DataRepository,
    ExistingLustre,
    IntelligentTieringLustre,
    Storage,
)
from ultracluster.model import Cluster
from ultracluster.model.people import homes_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import FSX, HPS, KUBERNETES, PCL, SLURM
from ultracluster.rules.sources import BOTOCORE

_DATE = "2026-11-23"
_HERE = "this configuration: storage.further_lustre"
_SHARED = "ParallelCluster User Guide, SharedStorage (a section of the cluster; queues have none)"


@FSX.error(71, _HERE, _DATE)
def first_lustre_exists(storage: Storage) -> Breaches:
    """Further Lustre file systems stand beside a first one."""
    if storage.lustre is None and storage.further_lustre:
        name, first = next(iter(storage.further_lustre.items()))
        settings = first.model_dump(mode="json", exclude_unset=True)
        yield at("further_lustre", name).breach(
            "there is no storage.lustre beside it: jobs, homes and checks look at that one first.",
            anywhere(
                {
                    ("storage", "lustre"): {"deployment": first.deployment, **settings},
                    ("storage", "further_lustre", name): DROP,
                }
            ),
        )


@FSX.error(72, _HERE, _DATE)
def lustre_groups_exist(cluster: Cluster) -> Breaches:
    """A Lustre file system is for node groups that exist."""
    for name, facts in cluster.lustres.items():
        for number, group in enumerate(facts.groups):
            if group not in cluster.groups:
                near = difflib.get_close_matches(group, list(cluster.groups), n=1, cutoff=0.0)
                yield at(*_place(name), "groups", number).breach(
                    f"there is no node group {group}: nodes that should mount {facts.mount_path} would not.",
                    write(*near),
                )


@FSX.error(73, _SHARED, _DATE, kinds=PCL.kinds)
def lustre_for_all_groups(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """No Lustre file system of ParallelCluster is for some groups only."""
    if facts.groups and cluster.traits.shares_all_mounts:
        yield at("groups").breach(
            f"ParallelCluster mounts {facts.mount_path} on every node of the cluster, and has no setting for "
            f"{', '.join(facts.groups)} alone.",
            drop().noting("HyperPod, PCS and EKS mount by group"),
        )


@FSX.error(
    74,
    f"{BOTOCORE} sagemaker: ClusterInstanceStorageConfigs, four at most; volumes and homes take three",
    _DATE,
    kinds=HPS.kinds,
)
def second_lustre_needs_scripts(cluster: Cluster) -> Breaches:
    """Lifecycle scripts mount the second Lustre file system of a HyperPod node."""
    if cluster.runs_scripts:
        return
    for group in cluster.groups:
        names = list(cluster.lustres_of(group))
        if len(names) > 1:
            path = _place(names[1])
            yield at(*path).breach(
                f"HyperPod mounts the first file system of group {group}, lifecycle scripts the others, and "
                f"with lifecycle `none` nothing mounts {cluster.lustres[names[1]].mount_path}.",
                anywhere({("orchestrator", "lifecycle"): DROP}),
            )
            return


@FSX.error(75, "mount(8); FSx API reference, DescribeFileSystems: an id is one file system", _DATE)
def file_system_unique(cluster: Cluster) -> Breaches:
    """No file system is named twice."""
    seen: dict[str, str] = {}
    for name, facts in cluster.lustres.items():
        settings = facts.settings
        if not isinstance(settings, ExistingLustre) or settings.id.startswith("$"):
            continue
        first = seen.setdefault(settings.id, name)
        if first != name:
            yield at(*_place(name), "id").breach(
                f"{settings.id} is that of {'.'.join(map(str, _place(first)))} already.",
                ask("fact", "the id of the other file system, with its dns_name and mount_name"),
            )


@FSX.warning(
    76,
    "FSx for Lustre User Guide: Quotas",
    _DATE,
    by_hand="aws service-quotas list-service-quotas --service-code fsx --region <region>",
)
def default_quota_of_all(cluster: Cluster) -> Breaches:
    """All Lustre file systems together fit the account's default quota.

    Of one that is too large by itself FSX007 tells.
    """
    sums: dict[str, list[tuple[str, int]]] = {}
    for name, facts in cluster.lustres.items():
        if facts.new is None or facts.capacity_gib is None or isinstance(facts.new, IntelligentTieringLustre):
            continue
        sums.setdefault(lustre(facts.new.deployment).quota, []).append((name, facts.capacity_gib))
    for quota, parts in sums.items():
        most = limits().quota_capacity_gib[quota]
        total = sum(gib for _, gib in parts)
        if len(parts) > 1 and total > most and all(gib <= most for _, gib in parts):
            yield at(*_place(parts[-1][0])).breach(
                f"{len(parts)} file systems have {total} GiB together: an account begins with {most} GiB of "
                "this kind in a Region, and FSx refuses what goes beyond.",
                ask("action", f"have quota {limits().quota_codes[quota]} raised first, or take less"),
            )


@FSX.warning(
    77, "FSx for Lustre User Guide, Export to Amazon S3: the newest change is what the object becomes", _DATE
)
def export_places_differ(cluster: Cluster) -> Breaches:
    """Two Lustre file systems do not export to one place in S3."""
    seen: list[tuple[str, str, DataRepository]] = []
    for name, links in cluster.environment.all_data_repositories.items():
        for folder, link in links.items():
            if not link.export_events:
                continue
            for other, other_folder, before in seen:
                if other != name and link.bucket == before.bucket and _overlap(link, before):
                    yield at(*_place(name), "data_repositories", folder, "export_events").breach(
                        f"`{folder}` and `{other_folder}` of {'.'.join(map(str, _place(other)))} are "
                        "exported to one place in S3: a file of the one replaces that of the other.",
                        drop().noting("or give each a prefix of its own"),
                    )
            seen.append((name, folder, link))


@FSX.warning(78, _HERE, _DATE)
def compute_group_has_lustre(cluster: Cluster) -> Breaches:
    """Each compute group mounts some Lustre file system where there are any."""
    if not cluster.mounts_differ:
        return
    for name in cluster.with_role("compute"):
        if not cluster.lustres_of(name):
            last = list(cluster.lustres)[-1]
            place = (*_place(last), "groups")
            yield at("node_groups", name).breach(
                f"no Lustre file system is for {name}: its jobs have nowhere to keep checkpoints.",
                anywhere({place: [*cluster.lustres[last].groups, name]}),
            )


@FSX.error(
    79,
    "Kubernetes API reference, VolumeMount (mountPath: must be unique in a container)",
    _DATE,
    kinds=KUBERNETES,
)
def pod_mounts_differ(cluster: Cluster) -> Breaches:
    """The Lustre file systems of one pod are mounted in different places.

    On Slurm MNT001 tells.
    """
    told: set[str] = set()
    for group in cluster.groups:
        own = sorted(cluster.lustres_of(group).items(), key=lambda one: one[1].mount_path)
        for (_, first), (name, second) in pairwise(own):
            if first.mount_path == second.mount_path and name not in told:
                told.add(name)
                further = (
                    name if name != FIRST_LUSTRE else next(iter(cluster.environment.storage.further_lustre))
                )
                yield at(*_place(further), "mount_path").breach(
                    f"{second.mount_path} is the mount of another Lustre file system on group {group} "
                    "already.",
                    write(f"/{further}"),
                )


@FSX.error(80, f"{_HERE}; docs/users.md (homes are on Lustre where there is no OpenZFS)", _DATE, kinds=SLURM)
def homes_mounted_everywhere(cluster: Cluster) -> Breaches:
    """All nodes mount the Lustre file system with the homes."""
    first = cluster.lustre
    people = cluster.environment.users or cluster.environment.directory
    if not first or not first.groups or not people or homes_of(cluster).mount != first.mount_path:
        return
    lacking = [name for name in cluster.groups if not first.mounted_by(name)]
    if lacking:
        yield at("storage", "lustre", "groups").breach(
            f"homes of users are on {first.mount_path}, which {', '.join(lacking)} would not mount: people "
            "have no home there, and no keys.",
            drop().noting("or storage.openzfs for homes"),
        )


def _place(name: str) -> YamlPath:
    return ("storage", "lustre") if name == FIRST_LUSTRE else ("storage", "further_lustre", name)


def _overlap(one: DataRepository, other: DataRepository) -> bool:
    first, second = one.prefix or "", other.prefix or ""
    return first.startswith(second) or second.startswith(first)

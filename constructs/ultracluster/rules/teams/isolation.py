"""Rules on: what keeps teams apart on Kubernetes: users, and root on the shared file systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ultracluster.config.remedy import write
from ultracluster.config.storage import ExistingLustre, ExistingOpenZfs, Lustre, NewOpenZfs, OpenZfs
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import KUBERNETES, TEA

_LEVELS = "Kubernetes documentation, Pod Security Standards (baseline: a container may be root)"


@TEA.rule(
    20,
    "warning",
    "Root in a team's pod is not root on the shared file systems",
    source=f"{_LEVELS}; FSx for Lustre User Guide, Lustre root squash; exports(5), root_squash",
    date="2026-11-22",
    kinds=KUBERNETES,
)
def root_on_shared_files(cluster: Cluster) -> Iterator[Breach]:
    storage = cluster.environment.storage
    open_to_root = [
        name
        for name, system in {
            "lustre": storage.lustre,
            **{f"further_lustre.{name}": one for name, one in storage.further_lustre.items()},
            "openzfs": storage.openzfs,
        }.items()
        if system and not _squashed(system)
    ]
    roots = [
        name
        for name, team in cluster.environment.teams.items()
        if team.pod_security == "baseline" and team.uid is None
    ]
    if len(cluster.environment.teams) < 2 or not open_to_root:
        return
    for name in roots:
        yield Breach(
            ("teams", name, "pod_security"),
            f"`baseline` lets the team's containers be root, who reads and changes every team's files on "
            f"{' and '.join(f'storage.{system}' for system in open_to_root)}.",
            write("restricted").noting(f"or give the team a user of its own (uid: {_free(cluster)})"),
        )


@TEA.rule(
    21,
    "warning",
    "Each team has a user of its own",
    source="this configuration: teams (`uid` is the owner of a team's files)",
    date="2026-11-22",
    kinds=KUBERNETES,
)
def one_user_for_two_teams(cluster: Cluster) -> Iterator[Breach]:
    teams = cluster.environment.teams
    counts = Counter(team.uid for team in teams.values() if team.uid is not None)
    first: set[int] = set()
    for name, team in teams.items():
        if team.uid is None or counts[team.uid] < 2:
            continue
        if team.uid in first:
            yield Breach(
                ("teams", name, "uid"),
                f"{counts[team.uid]} teams have the user {team.uid}: each reads and changes the others' "
                "files.",
                write(_free(cluster)),
            )
        first.add(team.uid)


def _squashed(system: Lustre | OpenZfs) -> bool:
    """Whether root is nobody on it; of a file system that exists nothing is known, and it passes."""
    match system:
        case ExistingLustre() | ExistingOpenZfs():
            return True
        case NewOpenZfs():
            return system.root_squash is not None
        case _:
            return system.root_squash is not None and system.root_squash.uid != 0


def _free(cluster: Cluster) -> int:
    """The next user that no team has."""
    return max([2000, *(team.uid for team in cluster.environment.teams.values() if team.uid)]) + 1

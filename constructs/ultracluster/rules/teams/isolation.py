"""Rules on: what keeps teams apart on Kubernetes: users, and root on the shared file systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ultracluster.config.remedy import inside, write
from ultracluster.config.storage import ExistingLustre, ExistingOpenZfs, Lustre, NewOpenZfs, OpenZfs
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import KUBERNETES, TEA

_LEVELS = "Kubernetes documentation, Pod Security Standards (baseline: a container may be root)"


@TEA.warning(
    20,
    f"{_LEVELS}; FSx for Lustre User Guide, Lustre root squash; exports(5), root_squash",
    "2026-11-22",
    kinds=KUBERNETES,
)
def pod_root_on_shared_files(cluster: Cluster) -> Breaches:
    """Root in a team's pod is not root on the shared file systems."""
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
        yield at("teams", name, "pod_security").breach(
            f"`baseline` lets the team's containers be root, who reads and changes every team's files on "
            f"{' and '.join(f'storage.{system}' for system in open_to_root)}.",
            write("restricted").noting(f"or give the team a user of its own (uid: {_free(cluster)})"),
        )


@TEA.warning(
    21, "this configuration: teams (`uid` is the owner of a team's files)", "2026-11-22", kinds=KUBERNETES
)
def team_uid_unique(cluster: Cluster) -> Breaches:
    """Each team has a user of its own."""
    teams = cluster.environment.teams
    counts = Counter(team.uid for team in teams.values() if team.uid is not None)
    first: set[int] = set()
    for name, team in teams.items():
        if team.uid is None or counts[team.uid] < 2:
            continue
        if team.uid in first:
            yield at("teams", name, "uid").breach(
                f"{counts[team.uid]} teams have the user {team.uid}: each reads and changes the others' "
                "files.",
                write(_free(cluster)),
            )
        first.add(team.uid)


@TEA.warning(
    32,
    "Kubernetes documentation, Pod Security Standards (restricted: any user but root)",
    "2026-11-27",
    kinds=KUBERNETES,
)
def shared_files_need_uid(cluster: Cluster) -> Breaches:
    """A team that shares file systems with others should have a `uid`."""
    teams = cluster.environment.teams
    shared = list(_shared(cluster))
    if len(teams) < 2 or not shared:
        return
    without = [name for name, team in teams.items() if team.uid is None]
    for place, name in enumerate(without):
        yield at("teams", name).breach(
            "pods of the team choose their user, and so may read and overwrite every team's files on "
            f"{' and '.join(f'storage.{system}' for system in shared)}.",
            inside(uid=_free(cluster) + place),
        )


def _shared(cluster: Cluster) -> Iterator[str]:
    """File systems that pods of every team can mount, by their place below `storage`."""
    storage = cluster.environment.storage
    if storage.lustre:
        yield "lustre"
    yield from (f"further_lustre.{name}" for name in storage.further_lustre)
    if storage.openzfs:
        yield "openzfs"


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

"""Accounts and groups of the people of a Slurm cluster: every id fixed, and where homes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ultracluster.config import Environment
from ultracluster.config.findings import YamlPath
from ultracluster.config.users import User
from ultracluster.model.cluster import Cluster

HOMES = "/home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Homes:
    """Where homes are."""

    root: str
    """Folder with one folder for each user."""
    mount: str | None
    """Where a file system must be mounted before a home is made; None where homes are on each node's disk."""
    by_controller: bool = False
    """The controller has that folder itself, and shares it (ParallelCluster)."""

    @property
    def shared(self) -> bool:
        return self.mount is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One user with ids and places worked out."""

    name: str
    uid: int
    gid: int
    groups: tuple[str, ...]
    """Names of further groups, sorted."""
    home: str
    keys: Sequence[str] = ()
    principals: Sequence[str] = ()
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """What nodes are to have."""

    homes: Homes
    accounts: tuple[Account, ...]
    """By name."""
    groups: Mapping[str, int]
    """Id of each group, users' own groups included; sorted by name."""


def people(cluster: Cluster) -> People:
    """The accounts of an environment; where ids clash or lack, which rules refuse, the first one counts."""
    users = cluster.environment.users
    homes = homes_of(cluster)
    groups = {name: gid for _, name, gid in reversed([*named_groups(users)])}
    own: dict[str, int] = {}
    for name, user in users.items():
        gid = user.uid if user.gid is None else user.gid
        if gid not in groups.values():
            own.setdefault(name, gid)
    ids = groups | {name: gid for name, gid in own.items() if name not in groups}
    return People(
        homes=homes,
        accounts=tuple(
            Account(
                name=name,
                uid=user.uid,
                gid=user.uid if user.gid is None else user.gid,
                groups=tuple(sorted({one for one in group_names(user) if one in ids})),
                home=f"{homes.root}/{name}",
                keys=user.keys,
                principals=user.principals,
                team=user.team,
            )
            for name, user in sorted(users.items())
        ),
        groups=dict(sorted(ids.items())),
    )


def homes_of(cluster: Cluster) -> Homes:
    """OpenZFS where there is one, else what ParallelCluster shares, else Lustre, else each node's disk."""
    zfs, lustre = cluster.environment.storage.openzfs, cluster.environment.lustre
    if zfs is not None:
        return _on(zfs.mount_path)
    if cluster.traits.shares_home:
        return Homes(root=HOMES, mount=HOMES, by_controller=True)
    if lustre is not None:
        return _on(lustre.mount_path)
    return Homes(root=HOMES, mount=None)


def _on(mount: str) -> Homes:
    return Homes(root=mount if mount == HOMES else f"{mount}{HOMES}", mount=mount)


def group_names(user: User) -> tuple[str, ...]:
    """Names of a user's further groups, as they are written."""
    return tuple(name for group in user.groups for name in ([group] if isinstance(group, str) else group))


def named_groups(users: Mapping[str, User]) -> Iterator[tuple[YamlPath, str, int]]:
    """Each group that is given an id: where, from the users on; its name, its id."""
    for user_name, user in users.items():
        for number, one in enumerate(user.groups):
            if isinstance(one, str):
                continue
            for name, gid in one.items():
                yield (user_name, "groups", number, name), name, gid


def team_users(environment: Environment, team: str) -> tuple[str, ...]:
    """Unix users who may run jobs in a team's account: those that it names, then those who name it."""
    listed = environment.teams[team].users if team in environment.teams else ()
    joined = (name for name, user in environment.users.items() if user.team == team)
    return tuple(dict.fromkeys((*listed, *joined)))


__all__ = ["Account", "Homes", "People", "group_names", "homes_of", "named_groups", "people", "team_users"]

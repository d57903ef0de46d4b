"""Rules on: names and ids of users and groups."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.node_accounts import taken_id, taken_names
from ultracluster.config import Environment
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import ask, rename, write
from ultracluster.config.users import User
from ultracluster.model.people import named_groups
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import USR

DATE = "2026-11-22"
USERADD = "useradd and groupadd manuals (shadow)"
NFS = "files on shared file systems belong to numbers (Lustre Operations Manual; NFS, RFC 7530 with AUTH_SYS)"
FIRST_FREE = 2000
"""Where free ids are looked for: above what images give to users."""


@USR.error(1, f"{USERADD}; {NFS}", DATE)
def user_id_unique(environment: Environment) -> Breaches:
    """A user id is one user's."""
    seen: dict[int, str] = {}
    for name, user in environment.users.items():
        first = seen.setdefault(user.uid, name)
        if first != name:
            yield at("users", name, "uid").breach(
                f"`{first}` has the id {user.uid} as well: each would own the other's files.",
                write(_free(environment)),
            )


@USR.error(2, f"{USERADD}; {NFS}", DATE)
def group_id_unique(environment: Environment) -> Breaches:
    """A group has one id, and an id one group."""
    users = environment.users
    ids: dict[str, int] = {}
    names: dict[int, str] = {}
    for place, name, gid in named_groups(users):
        if ids.setdefault(name, gid) != gid:
            yield at("users", *place).breach(
                f"the group `{name}` has the id {ids[name]} with another user: nodes can give it only one.",
                write(ids[name]),
            )
        elif names.setdefault(gid, name) != name:
            yield at("users", *place).breach(
                f"the id {gid} is the group `{names[gid]}`'s.", write(_free(environment))
            )
    own: dict[int, str] = {}
    for name, user in users.items():
        gid = user.uid if user.gid is None else user.gid
        if gid in names:
            continue
        first = own.setdefault(gid, name)
        path: YamlPath = ("users", name, *(["gid"] if user.gid is not None else ["uid"]))
        if first != name and user.gid is not None:
            yield at(*path).breach(
                f"the group {gid} is `{first}`'s own, and has no other name.",
                ask("decision", f"groups: [{{team: {gid}}}] gives the group a name, with whichever user"),
            )
        elif name in ids:
            yield at(*path).breach(
                f"`{name}` is a group with the id {ids[name]} already: the user's own group {gid} would have "
                "the same name.",
                ask("decision", f"gid: {ids[name]}, or another name for the group"),
            )


@USR.error(3, f"{USERADD}; {NFS}", DATE)
def group_has_id(environment: Environment) -> Breaches:
    """A group has an id, the same on every node."""
    known = {name for _, name, _ in named_groups(environment.users)} | environment.users.keys()
    for name, user in environment.users.items():
        for number, group in enumerate(user.groups):
            if isinstance(group, str) and group not in known:
                yield at("users", name, "groups", number).breach(
                    f"nobody gives the group `{group}` an id: each node would take another one.",
                    write({group: _free(environment)}),
                )


@USR.error(4, "catalog/node_accounts.json, with the source of each name", DATE)
def names_free_on_image(environment: Environment) -> Breaches:
    """Users and groups are none of the image or of its services."""
    taken = taken_names()
    for name, user in environment.users.items():
        if name in taken or name.startswith("systemd-"):
            yield at("users", name).breach(
                f"`{name}` is {taken.get(name, 'of systemd')}: nodes change no user whom they did not make.",
                rename(f"{name}-2"),
            )
        for number, group in enumerate(user.groups):
            for one in [group] if isinstance(group, str) else group:
                if one in taken:
                    yield at("users", name, "groups", number).breach(
                        f"the group `{one}` is {taken[one]}.",
                        write(f"{one}-2" if isinstance(group, str) else {f"{one}-2": group[one]}).noting(
                            "who may become root opens a session with `ultracluster connect --admin`"
                        ),
                    )


@USR.error(5, "catalog/node_accounts.json, with the source of each range", DATE)
def ids_free_on_image(environment: Environment) -> Breaches:
    """User and group ids are free on the images."""
    places = [
        (("users", name, field), getattr(user, field))
        for name, user in environment.users.items()
        for field in ("uid", "gid")
    ]
    places += [(("users", *place), gid) for place, _, gid in named_groups(environment.users)]
    for path, number in places:
        found = taken_id(number) if number is not None else None
        if found:
            span = f"{found.first}" if found.first == found.last else f"{found.first} to {found.last}"
            yield at(*path).breach(f"the id {number} is {found.what} ({span}).", write(_free(environment)))


def _free(environment: Environment) -> int:
    """The nearest id that nobody has here."""
    taken = {number for user in environment.users.values() for number in _numbers(user)}
    return next(one for one in range(FIRST_FREE, 60000) if one not in taken and not taken_id(one))


def _numbers(user: User) -> Iterator[int]:
    yield user.uid
    if user.gid is not None:
        yield user.gid
    for group in user.groups:
        if not isinstance(group, str):
            yield from group.values()

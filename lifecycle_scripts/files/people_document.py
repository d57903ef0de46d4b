"""What users.json may say: all of it, or nothing of it is done.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import json
import re
from pathlib import Path

NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
KEY = re.compile(r"[a-z][a-z0-9@.-]{5,50} [A-Za-z0-9+/]{16,4000}={0,3}( [A-Za-z0-9@._+=:, -]{1,200})?")
FIRST, LAST = 1000, 2147483647
# nobody of Linux, and nobody of systems whose ids had 16 bits
NOBODY = (65534, 65535)
# The user of people's sessions (steps/session_user.sh)
SESSION_ID = 4999
# Users and groups of the images and of the services on them, which no document can make anybody's
OTHERS = frozenset(
    (
        *("root", "ubuntu", "ec2-user", "rocky", "centos", "admin", "ultracluster", "ssm-user", "nobody"),
        *("ultracluster-agent", "ultracluster-metrics"),
        *("slurm", "slurmdbd", "munge", "pcluster-admin", "dcv", "nvidia-persistenced", "cwagent", "aoc"),
        *("nogroup", "sudo", "wheel", "adm", "docker", "lxd", "disk", "shadow", "kmem", "tty", "staff"),
    )
)


class MalformedError(Exception):
    """Why a document is not taken."""


def load(path):
    """The document, with users and groups by name.

    Raises:
        MalformedError: it is none, or says something that cannot be.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MalformedError(f"no JSON: {error}") from None
    return checked(document)


def checked(document):
    if not isinstance(document, dict) or document.get("schema") != 1 or document.get("document") != "users":
        raise MalformedError("it is no document of users")
    removals = document.get("removals", "few")
    if removals not in ("few", "any"):
        raise MalformedError(f"removals is {removals!r:.40}, not few or any")
    groups = {}
    for row in rows(document, "groups"):
        name, gid = word(row, "name", NAME), number(row, "gid")
        if name in groups or gid in groups.values():
            raise MalformedError(f"group {name} ({gid}): a name or id that is there twice")
        groups[name] = gid
    homes = homes_of(document.get("homes"))
    users, ids = {}, set()
    for row in rows(document, "users"):
        user = user_of(row, groups, homes["root"])
        if user["name"] in users or user["uid"] in ids:
            raise MalformedError(f"user {user['name']} ({user['uid']}): a name or id that is there twice")
        users[user["name"]] = user
        ids.add(user["uid"])
    return {"users": users, "groups": groups, "homes": homes, "removals": removals}


def homes_of(homes):
    if not isinstance(homes, dict) or not isinstance(homes.get("by_controller", False), bool):
        raise MalformedError(f"homes is {homes!r:.60}")
    mount = word(homes, "mount", PATH) if homes.get("mount") is not None else None
    return {
        "root": word(homes, "root", PATH),
        "mount": mount,
        "by_controller": homes.get("by_controller", False),
    }


def user_of(row, groups, root):
    name, uid, gid = word(row, "name", NAME), number(row, "uid"), number(row, "gid")
    further = texts(row, "groups", NAME)
    if gid not in groups.values():
        raise MalformedError(f"user {name}: no group has the id {gid}")
    if missing := [one for one in further if one not in groups]:
        raise MalformedError(f"user {name}: no group {', '.join(missing)}")
    home = word(row, "home", PATH)
    if home != f"{root}/{name}":
        raise MalformedError(f"user {name}: the home {home} is not {root}/{name}")
    return {
        "name": name,
        "uid": uid,
        "gid": gid,
        "groups": sorted(set(further)),
        "home": home,
        "keys": texts(row, "keys", KEY),
    }


def rows(document, key):
    value = document.get(key)
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise MalformedError(f"{key} is no list of objects")
    return value


def word(row, key, form):
    value = row.get(key)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise MalformedError(f"{key} is {value!r:.80}")
    return value


def texts(row, key, form):
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and form.fullmatch(one) for one in value):
        raise MalformedError(f"{key} of {row.get('name')!r:.40} is {value!r:.80}")
    return value


def number(row, key):
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LAST:
        raise MalformedError(f"{key} of {row.get('name')!r:.40} is {value!r:.40}")
    return value


def why_reserved(name, number_of):
    """Why a name or id is nobody's to have; empty where it is free."""
    if name in OTHERS or name.startswith("systemd-"):
        return f"`{name}` is of the image or of a service on it"
    if number_of < FIRST:
        return f"ids below {FIRST} ({number_of}) are the system's"
    if number_of in NOBODY:
        return f"{number_of} is nobody's id"
    if number_of == SESSION_ID:
        return f"{number_of} is the id of the sessions' user"
    return ""

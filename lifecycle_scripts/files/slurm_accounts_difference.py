"""What brings Slurm's accounting to a document of teams: a pure function.

Python 3.9 and newer.
"""

from typing import NamedTuple

BUILT_IN = "normal"
"""The one QOS that every Slurm has."""
CLOSED = {"grpjobs": "0", "grpsubmit": "0"}
NO_LIMIT = "-1"
ROOT = "root"
"""The account above all others."""


class Step(NamedTuple):
    """One command of sacctmgr, and what it does in words."""

    command: tuple
    words: str


class Difference(NamedTuple):
    steps: list
    problems: list
    """What stays other than the document says, and why."""


def difference(wanted, have, is_system=lambda user: False):
    """What brings accounting to the document; calls nothing.

    Args:
        wanted: the document.
        have: `{"cluster", "qos": {name: {...}}, "accounts": {name: {...}}, "associations": {(account, user):
            {...}}, "defaults": {user: account}}` as `read` gives them; associations of this cluster only, of
            an account itself with the user "".
        is_system: whether a user is an account of the system.
    """
    steps, problems = [], []
    _qos(wanted, have, steps, problems)
    ours = _accounts(wanted, have, steps, problems)
    members = {}
    for account in wanted["accounts"]:
        if account["name"] not in ours:
            continue
        for user in account["users"]:
            if is_system(user):
                problems.append(f"{user} is a user of the system: not made a member of {account['name']}")
            else:
                members.setdefault(user, []).append(account["name"])
    _members(wanted, have, members, steps)
    gone = [
        name
        for name, one in have["accounts"].items()
        if name not in {account["name"] for account in wanted["accounts"]}
        and one["description"] == f"team {name}"
        and one["organization"] == wanted["organization"]
        and (name, "") in have["associations"]
    ]
    _leave(have, members, {*ours, *gone}, steps)
    for name in sorted(gone, key=lambda one: (-len(_above(have, one)), one)):
        below = sorted(
            account
            for account, user in have["associations"]
            if not user and account not in (*ours, *gone) and name in _above(have, account, ours)
        )
        if below:
            # sacctmgr deletes what is below an account with it, and a closed one closes them
            problems.append(
                f"the account {name}, whose team was removed, stays: below it is {below[0]}, which others "
                f"made. Move it with: sacctmgr modify account {below[0]} set parent=root"
            )
        else:
            _close(wanted, have, name, steps)
    return Difference(steps, problems)


def _qos(wanted, have, steps, problems):
    for want in wanted["qos"]:
        name, now = want["name"], have["qos"].get(want["name"])
        mark = f"ultracluster priority {name}"
        full = {
            "priority": str(want["priority"]),
            "preempt": ",".join(sorted(want["preempts"])),
            "preemptmode": want["preempt_mode"] or "cluster",
            "gracetime": str(want["grace_seconds"]),
        }
        if now is None:
            # a QOS can only name one that is there: what it preempts comes below
            first = [
                f"{key}={value}" for key, value in full.items() if key != "preempt" and value != "cluster"
            ]
            steps.append(Step(("add", "qos", name, f"description={mark}", *first), f"make the QOS {name}"))
            now = {**full, "preempt": "", "description": mark}
        elif name == BUILT_IN:
            preempts = {*filter(None, now["preempt"].split(",")), *want["preempts"]}
            full = {"priority": full["priority"], "preempt": ",".join(sorted(preempts))}
        elif now["description"] != mark:
            problems.append(
                f"the QOS {name} is there and was not made by this: it stays as it is. Hand it over with: "
                f"sacctmgr modify qos {name} set description='{mark}'"
            )
            continue
        change = {key: value for key, value in full.items() if now[key] != value}
        if change:
            steps.append(
                Step(
                    ("modify", "qos", "where", f"name={name}", "set", *_settings(change)),
                    f"QOS {name}: {_words(change, now)}",
                )
            )


def _accounts(wanted, have, steps, problems):
    """The names of those that are ours to fill. The document names a parent before its children: when a
    child moves, its new parent is where it stays, and so never below the child."""
    cluster, ours = have["cluster"], set()
    names = {want["name"] for want in wanted["accounts"]}
    for want in wanted["accounts"]:
        name = want["name"]
        known, now = have["accounts"].get(name), have["associations"].get((name, ""))
        if known is not None and known["description"] != f"team {name}":
            problems.append(
                f"the account {name} is there and was not made by this ({known['description']!r}): it stays "
                f"as it is. Hand it over with: sacctmgr modify account {name} set description='team {name}'"
            )
            continue
        parent = want.get("parent", "")
        if parent and parent not in ours:
            problems.append(f"the account {name} stays as it is: its parent {parent} was not made by this")
            continue
        ours.add(name)
        full = {
            "fairshare": str(want["shares"]),
            "qos": ",".join(sorted(one["name"] for one in wanted["qos"])),
            "defaultqos": wanted["default_qos"],
            "grptres": dict(want["limits"]),
        }
        if now is None:
            made = _settings({**full, "grptres": _tres(want["limits"])})
            words = ("add", "account", name, f"cluster={cluster}", f"description=team {name}")
            words += (f"organization={wanted['organization']}", *((f"parent={parent}",) if parent else ()))
            steps.append(Step((*words, *made), f"make the account {name}"))
            continue
        change = {key: value for key, value in full.items() if key != "grptres" and now[key] != value}
        limits = {key: value for key, value in full["grptres"].items() if now["grptres"].get(key) != value}
        # of limits only those that this makes are its own: GPUs
        if "gres/gpu" in now["grptres"] and "gres/gpu" not in full["grptres"]:
            limits["gres/gpu"] = -1
        if limits:
            change["grptres"] = _tres(limits)
        change.update({key: NO_LIMIT for key in CLOSED if now[key] == "0"})
        above = now.get("parentname") or ROOT
        # out of a parent that this made it goes to the top; one that others chose stays
        if parent != above if parent else above in names or _is_ours(wanted, have, above):
            change = {"parent": parent or ROOT, **change}
        if change:
            before = {**now, "grptres": _tres(now["grptres"]), "parent": above}
            command = ("modify", "account", "where", f"name={name}", f"cluster={cluster}", "set")
            words = f"account {name}: {_words(change, before)}"
            steps.append(Step((*command, *_settings(change)), words))
    return ours


def _members(wanted, have, members, steps):
    cluster = have["cluster"]
    defaults = {one["name"]: one["default_account"] for one in wanted["users"]}
    limits = {one["name"]: one.get("user_limits", {}) for one in wanted["accounts"]}
    for user, accounts in sorted(members.items()):
        for account in accounts:
            now = have["associations"].get((account, user))
            if now is None:
                limit = (f"grptres={_tres(limits[account])}",) if limits[account] else ()
                command = ("add", "user", user, f"account={account}", f"cluster={cluster}", *limit)
                steps.append(Step(command, f"{user} joins {account}"))
                continue
            where = ("where", f"name={user}", f"account={account}", f"cluster={cluster}")
            if now["maxsubmit"] == "0":
                steps.append(
                    Step(
                        ("modify", "user", *where, "set", f"maxsubmitjobs={NO_LIMIT}"),
                        f"{user} joins {account} again",
                    )
                )
            # as of an account, only GPUs are limited by this
            most, before = limits[account].get("gres/gpu"), now["grptres"].get("gres/gpu")
            if most != before:
                change = {"grptres": f"gres/gpu={NO_LIMIT if most is None else most}"}
                words = _words(change, {"grptres": _tres(now["grptres"])})
                steps.append(
                    Step(
                        ("modify", "user", *where, "set", *_settings(change)), f"{user} in {account}: {words}"
                    )
                )
        default = defaults.get(user)
        if default not in accounts:
            default = accounts[0]
        # the first account of a user becomes the default by itself
        now = have["defaults"].get(user) or accounts[0]
        if now != default:
            where = ("where", f"name={user}", f"cluster={cluster}")
            steps.append(
                Step(
                    ("modify", "user", *where, "set", f"defaultaccount={default}"),
                    f"{user}: {default} by default",
                )
            )


def _leave(have, members, ours, steps):
    """Users who are members of an account of ours, and of no team that it stands for."""
    cluster = have["cluster"]
    # of several, that which is the default goes last: sacctmgr does not take it from a user who has others
    for account, user in sorted(
        have["associations"], key=lambda one: (one[1], have["defaults"].get(one[1]) == one[0], one)
    ):
        if not user or account not in ours or account in members.get(user, ()):
            continue
        others = sorted(
            one
            for one, name in have["associations"]
            if name == user and one != account and (one not in ours or one in members.get(user, ()))
        )
        if user not in members and others and have["defaults"].get(user) == account:
            where = ("where", f"name={user}", f"cluster={cluster}")
            steps.append(
                Step(
                    ("modify", "user", *where, "set", f"defaultaccount={others[0]}"),
                    f"{user}: {others[0]} by default",
                )
            )
        command = ("delete", "user", "where", f"name={user}", f"account={account}", f"cluster={cluster}")
        steps.append(Step(command, f"{user} leaves {account}"))


def _above(have, name, moved=()):
    """The parents of an account, the nearest first; those of accounts that may have moved are left out."""
    found = []
    while name not in moved:
        name = have["associations"].get((name, ""), {}).get("parentname", "")
        if not name or name in found:
            break
        found.append(name)
    return found


def _is_ours(wanted, have, name):
    known = have["accounts"].get(name, {})
    return known.get("description") == f"team {name}" and known["organization"] == wanted["organization"]


def _close(wanted, have, name, steps):
    cluster, now = have["cluster"], have["associations"][name, ""]
    where = ("where", f"name={name}", f"cluster={cluster}")
    if wanted["remove"]:
        steps.append(Step(("delete", "account", *where), f"delete the account {name}, whose team is gone"))
    elif any(now[key] != value for key, value in CLOSED.items()):
        change = _settings({"grpjobs": "0", "grpsubmitjobs": "0"})
        steps.append(
            Step(
                ("modify", "account", *where, "set", *change), f"close the account {name}, whose team is gone"
            )
        )


def _settings(change):
    names = {"grpsubmit": "grpsubmitjobs"}
    return tuple(
        f"{names.get(key, key)}={value}" for key, value in change.items() if value != "" or key == "preempt"
    )


def _words(change, now):
    return ", ".join(
        f"{key} {now.get(key) or 'none'} becomes {value or 'none'}" for key, value in change.items()
    )


def _tres(limits):
    return ",".join(f"{name}={amount}" for name, amount in sorted(limits.items()))

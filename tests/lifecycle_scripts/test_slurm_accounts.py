"""The difference between teams and accounting, over any state of it; a stand-in makes what it says."""

from __future__ import annotations

import copy
import importlib.util
import sys
from types import ModuleType
from typing import Any

from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from project import ROOT


def load(name: str) -> ModuleType:
    """A file of nodes' Python, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "lifecycle_scripts" / "files" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


DIFFERENCE = load("slurm_accounts_difference")
CLUSTER, ORGANIZATION = "dev", "dev"
ACCOUNTS = ("research", "product", "theirs", "guests")
USERS = ("alice", "bob", "zoe", "daemon")
QOS = ("low", "normal", "high", "long")
Have = dict[str, Any]


def association(**fields: Any) -> dict[str, Any]:
    return {
        "fairshare": "1", "grptres": {}, "qos": "normal", "defaultqos": "", "grpjobs": "", "grpsubmit": "",
        "maxsubmit": "", "parentname": "",
    } | fields  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(ACCOUNTS), unique=True, max_size=3))
    accounts = [
        {
            "name": name,
            "shares": draw(st.integers(0, 20)),
            "limits": draw(st.sampled_from([{}, {"gres/gpu": 0}, {"gres/gpu": 8}])),
            "users": draw(st.lists(st.sampled_from(USERS), unique=True)),
        }
        for name in names
    ]
    for number, one in enumerate(accounts):  # a parent comes first
        if parent := draw(st.sampled_from(["", *names[:number]])):
            one["parent"] = parent
        if most := draw(st.sampled_from([0, 0, 2, 4])):
            one["user_limits"] = {"gres/gpu": most}
    members = {user: [one["name"] for one in accounts if user in one["users"]] for user in USERS}
    qos = [
        {"name": "low", "priority": 10, "preempts": [], "preempt_mode": "requeue", "grace_seconds": 120},
        {"name": "normal", "priority": 50, "preempts": ["low"], "preempt_mode": "", "grace_seconds": 0},
        {"name": "high", "priority": 90, "preempts": ["low"], "preempt_mode": "", "grace_seconds": 0},
    ]
    return {
        "organization": ORGANIZATION, "default_qos": "normal", "remove": draw(st.booleans()),
        "qos": qos if accounts else [], "accounts": accounts,
        "users": [
            {"name": user, "default_account": draw(st.sampled_from(there))}
            for user, there in members.items() if there
        ],
    }  # fmt: skip


@st.composite
def states(draw: st.DrawFn) -> Have:
    """Accounting that people, other environments and earlier documents have worked on."""
    have: Have = {
        "cluster": CLUSTER,
        "qos": {"normal": qos("Normal QOS default")},
        "accounts": {"root": {"description": "default root account", "organization": "root"}},
        "associations": {("root", ""): association(), ("root", "root"): association()},
        "defaults": {"root": "root"},
    }
    for name in draw(st.lists(st.sampled_from(QOS), unique=True)):
        mark = draw(st.sampled_from([f"ultracluster priority {name}", name]))
        have["qos"][name] = qos(mark if name != "normal" else "Normal QOS default", preempt=draw(
            st.sampled_from(["", "low", "long", "long,low"])))  # fmt: skip
    for name in draw(st.lists(st.sampled_from(ACCOUNTS), unique=True)):
        have["accounts"][name] = {
            "description": draw(st.sampled_from([f"team {name}", "by hand"])),
            "organization": draw(st.sampled_from([ORGANIZATION, "prod"])),
        }
        if draw(st.booleans()):
            closed = draw(st.sampled_from(["", "0"]))
            above = draw(st.sampled_from([one for one, user in have["associations"] if not user]))
            limits = draw(st.sampled_from([{}, {"gres/gpu": 4}, {"cpu": 9, "gres/gpu": 8}]))
            have["associations"][name, ""] = association(
                grpjobs=closed, grpsubmit=closed, parentname=above, grptres=limits
            )
            for user in draw(st.lists(st.sampled_from(USERS), unique=True)):
                barred = draw(st.sampled_from(["", "0"]))
                most = draw(st.sampled_from([{}, {"gres/gpu": 4}, {"cpu": 9}]))
                have["associations"][name, user] = association(maxsubmit=barred, grptres=most)
    for user in USERS:
        there = sorted(account for account, name in have["associations"] if name == user)
        if there:
            have["defaults"][user] = draw(st.sampled_from(there))
    return have


def qos(description: str, **fields: str) -> dict[str, str]:
    row = {"priority": "0", "preempt": "", "preemptmode": "cluster", "gracetime": "0"}
    return {"description": description} | row | fields


def make(have: Have, command: tuple[str, ...]) -> None:
    """What sacctmgr does with one command, as far as it is used here; it refuses what Slurm refuses."""
    verb, entity, *words = command
    names = {"grpsubmitjobs": "grpsubmit", "maxsubmitjobs": "maxsubmit"}
    where = dict(word.split("=", 1) for word in words if "=" in word)
    if verb == "modify":
        at = words.index("set")
        change = {names.get(k, k): v for k, v in (word.split("=", 1) for word in words[at + 1 :])}
        where = dict(word.split("=", 1) for word in words[1:at])
        change = {key: "" if value == "-1" else value for key, value in change.items()}
    else:
        change = {}
    match verb, entity:
        case "add", "qos":
            have["qos"][words[0]] = qos("") | {k: v for k, v in where.items() if k != "name"}
        case "modify", "qos":
            have["qos"][where["name"]] |= change
        case "add", "account":
            name = words[0]
            known = {"description": where["description"], "organization": where["organization"]}
            have["accounts"].setdefault(name, known)
            row = association(**{k: v for k, v in where.items() if k in ("fairshare", "qos", "defaultqos")})
            row["qos"] = ",".join(sorted(row["qos"].split(",")))
            set_limits(row, where.get("grptres", ""))
            have["associations"][name, ""] = row
            set_parent(have, name, where.get("parent", "root"))
        case "modify", "account":
            row = have["associations"][where["name"], ""]
            set_limits(row, change.pop("grptres", ""))
            if "parent" in change:
                set_parent(have, where["name"], change.pop("parent"))
            row |= change
        case "add", "user":
            assert (where["account"], "") in have["associations"], "sacctmgr: this account doesn't exist"
            have["associations"][where["account"], words[0]] = row = association()
            set_limits(row, where.get("grptres", ""))
            have["defaults"].setdefault(words[0], where["account"])
        case "modify", "user" if "defaultaccount" in change:
            assert (change["defaultaccount"], where["name"]) in have["associations"]
            have["defaults"][where["name"]] = change["defaultaccount"]
        case "modify", "user":
            row = have["associations"][where["account"], where["name"]]
            set_limits(row, change.pop("grptres", ""))
            row |= change
        case "delete", "user":
            user, account = where["name"], where["account"]
            del have["associations"][account, user]
            others = [one for one, name in have["associations"] if name == user]
            if have["defaults"][user] == account:
                assert not others, "sacctmgr: You can not remove the default account of a user"
                del have["defaults"][user]
        case "delete", "account":
            assert not [1 for account, user in have["associations"] if account == where["name"] and user]
            below = [row for row in have["associations"].values() if row["parentname"] == where["name"]]
            assert not below, "sacctmgr deletes what is below, too"
            del have["associations"][where["name"], ""]
        case _:
            raise AssertionError(command)


def set_parent(have: Have, name: str, parent: str) -> None:
    """Slurm refuses an account below itself."""
    above = parent
    while above:
        assert above != name and (above, "") in have["associations"], f"{name} below {parent}"
        above = have["associations"][above, ""]["parentname"]
    have["associations"][name, ""]["parentname"] = parent


def set_limits(row: dict[str, Any], text: str) -> None:
    for part in filter(None, text.split(",")):
        name, _, amount = part.partition("=")
        row["grptres"] = {key: value for key, value in row["grptres"].items() if key != name}
        if amount != "-1":
            row["grptres"][name] = int(amount)


def applied(document: dict[str, Any], have: Have) -> tuple[Have, list[str]]:
    made = copy.deepcopy(have)
    found = DIFFERENCE.difference(document, have, lambda user: user == "daemon")
    for step in found.steps:
        make(made, step.command)
    return made, found.problems


def _by_hand(have: Have, name: str) -> bool:
    return have["accounts"].get(name, {}).get("description", f"team {name}") != f"team {name}"


RUNS = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RUNS
@given(document=documents(), have=states())
def test_a_second_run_does_nothing(document: dict[str, Any], have: Have) -> None:
    made, problems = applied(document, have)
    again = DIFFERENCE.difference(document, made, lambda user: user == "daemon")

    assert again.steps == []
    assert again.problems == problems


@RUNS
@given(document=documents(), have=states())
def test_what_others_made_stays(document: dict[str, Any], have: Have) -> None:
    made, _ = applied(document, have)
    wanted = {one["name"] for one in document["accounts"]}

    for name, one in have["accounts"].items():
        by_hand = one["description"] != f"team {name}"
        of_others = one["organization"] != ORGANIZATION and name not in wanted
        if by_hand or of_others:
            for key, row in have["associations"].items():
                if key[0] == name:
                    assert made["associations"][key] == row
    assert {name for name, user in have["associations"] if not user and _by_hand(have, name)} <= {
        name for name, _ in made["associations"]
    }
    for name, one in have["qos"].items():
        if name == "normal":
            kept = {*filter(None, one["preempt"].split(","))}
            assert kept <= {*made["qos"][name]["preempt"].split(",")}
        elif one["description"] != f"ultracluster priority {name}":
            assert made["qos"][name] == one


@RUNS
@given(document=documents(), have=states())
def test_accounts_have_their_members_and_nobody_else(document: dict[str, Any], have: Have) -> None:
    made, problems = applied(document, have)
    left: set[str] = set()

    for account in document["accounts"]:
        name, parent = account["name"], account.get("parent", "")
        if _by_hand(have, name) or parent in left:
            assert any(name in problem for problem in problems)
            left.add(name)
            continue
        above = made["associations"][name, ""]["parentname"]
        assert above == parent if parent else _by_hand(made, above)
        row = made["associations"][name, ""]
        assert row["fairshare"] == str(account["shares"])
        assert row["grptres"].get("gres/gpu") == account["limits"].get("gres/gpu")
        assert (row["grpjobs"], row["grpsubmit"]) != ("0", "0")
        members = {user for account_, user in made["associations"] if account_ == name and user}
        assert members == {user for user in account["users"] if user != "daemon"}
        assert all(made["associations"][name, user]["maxsubmit"] != "0" for user in members)
        most = account.get("user_limits", {}).get("gres/gpu")
        assert all(made["associations"][name, user]["grptres"].get("gres/gpu") == most for user in members)
        if "daemon" in account["users"]:
            assert any("daemon is a user of the system" in problem for problem in problems)
    for name in have["accounts"].keys() - {one["name"] for one in document["accounts"]}:
        one = have["accounts"][name]
        ours = one == {"description": f"team {name}", "organization": ORGANIZATION}
        if ours and (name, "") in have["associations"]:
            row = made["associations"].get((name, ""))
            if any(f"the account {name}, whose team was removed, stays" in one for one in problems):
                continue
            assert (row is None) == document["remove"]
            assert row is None or (row["grpjobs"], row["grpsubmit"]) == ("0", "0")

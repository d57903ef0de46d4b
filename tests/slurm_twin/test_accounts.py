"""Teams as accounts, in a real slurmdbd: what nodes run, as the script that a person runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes_support import environment
from slurm_twin.configuration import CONTROLLER
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines
from ultracluster.model import resolve
from ultracluster.slurm.accounts import slurm_accounts

TEAMS: dict[str, Any] = {
    "research": {"quota": 16, "limit": 24, "users": ["alice", "bob"]},
    "product": {"quota": 8, "users": ["alice"]},
    "guests": {},
}
LATER: dict[str, Any] = {**TEAMS, "product": {"quota": 4, "limit": 8, "users": ["alice", "carol"]}}


def script(teams: dict[str, Any], *, remove: bool = False, **more: Any) -> str:
    text = slurm_accounts(resolve(environment({"teams": teams, **more}, base="prod")))
    return text.replace(' "remove": false', f' "remove": {str(remove).lower()}')


@pytest.fixture(scope="module")
def database(machines: Machines) -> Iterator[Twin]:
    """Without an account but root's, before and afterwards."""
    twin = machines().fresh()
    yield twin
    names = ",".join(row.split("|")[0] for row in twin.run("sacctmgr -nP show account").stdout.splitlines())
    twin.run(f"sacctmgr -i delete account {names.replace('root', '').strip(',')}", check=False)
    twin.run(
        "sacctmgr -i modify qos normal set priority=0 preempt=; sacctmgr -i delete qos low,high", check=False
    )


def run(teams: dict[str, Any], twin: Twin, *options: str, complete: bool = True, **more: Any) -> list[str]:
    """Lines that the script prints."""
    twin.put(CONTROLLER, "/root/accounts.sh", script(teams, **more))
    done = twin.run(f"bash accounts.sh {' '.join(options)}", check=False)

    assert done.returncode == (0 if complete else 1), done.stdout + done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


def sacctmgr(twin: Twin, *words: str) -> list[str]:
    return twin.run(shlex.join(["sacctmgr", *words])).stdout.splitlines()


def associations(twin: Twin) -> set[str]:
    fields = "format=account,user,fairshare,grptres,qos,defaultqos,grpjobs,grpsubmit"
    shown = sacctmgr(twin, "-nP", "show", "assoc", "cluster=twin", fields)
    return {line.rstrip("|") for line in shown if not line.startswith("root|")}


def qos(twin: Twin) -> set[str]:
    fields = "format=name,priority,preempt,preemptmode,gracetime"
    return set(sacctmgr(twin, "-nP", "show", "qos", fields))


ALL = "high,low,normal"
MADE = {
    f"research||16|gres/gpu=24|{ALL}|normal",
    f"research|alice|1||{ALL}|normal",
    f"research|bob|1||{ALL}|normal",
    f"product||8||{ALL}|normal",
    f"product|alice|1||{ALL}|normal",
    f"guests||0||{ALL}|normal",
}
NOTHING = "; no changes"


def test_accounts_are_made_changed_and_closed(database: Twin) -> None:
    foreseen = run(TEAMS, database, "--dry-run")
    assert associations(database) == set()
    done = run(TEAMS, database)
    assert [f"would: {line}" for line in done[:-1]] == foreseen[:-1]
    assert associations(database) == MADE
    assert qos(database) == {
        "low|10||requeue|00:02:00", "normal|50|low|cluster|00:00:00", "high|90|low|cluster|00:00:00",
    }  # fmt: skip

    assert run(TEAMS, database)[-1].endswith(NOTHING)

    run(LATER, database)
    changed = {line for line in MADE if not line.startswith("product||")}
    later = changed | {f"product||4|gres/gpu=8|{ALL}|normal", f"product|carol|1||{ALL}|normal"}
    assert associations(database) == later

    # product is gone, and with it carol, who was in no other team
    left = {name: team for name, team in LATER.items() if name != "product"}
    run(left, database)
    kept = {line for line in later if not line.startswith("product|")}
    assert associations(database) == kept | {f"product||4|gres/gpu=8|{ALL}|normal|0|0"}
    assert run(left, database)[-1].endswith(NOTHING)
    assert not [line for line in sacctmgr(database, "-nP", "show", "user") if line.startswith("carol")]

    # it comes back as it was
    run(LATER, database)
    assert associations(database) == later
    run(left, database, remove=True)
    assert associations(database) == kept
    assert run(left, database)[-1].endswith(NOTHING)


TREE: dict[str, Any] = {
    "science": {"quota": 24, "limit": 32},
    "vision": {"quota": 16, "parent": "science", "most_per_user": 8, "users": ["alice", "bob"]},
    "speech": {"quota": 8, "parent": "science", "users": ["carol"]},
}


def tree(twin: Twin) -> dict[str, str]:
    shown = sacctmgr(twin, "-nP", "show", "assoc", "cluster=twin", "format=account,user,parentname,grptres")
    rows = [line.split("|") for line in shown if not line.startswith("root|")]
    return {f"{account} {user}".strip(): f"{parent} {limit}".strip() for account, user, parent, limit in rows}


def test_teams_of_teams_and_limits_of_users(database: Twin) -> None:
    run(TREE, database, remove=True)
    assert tree(database) == {
        "science": "root gres/gpu=32", "vision": "science", "speech": "science",
        "vision alice": "gres/gpu=8", "vision bob": "gres/gpu=8", "speech carol": "",
    }  # fmt: skip
    assert run(TREE, database)[-1].endswith(NOTHING)

    # parent and child change places, a team moves, limits of users come and go
    moved = {
        "speech": {"quota": 24, "users": ["carol"], "most_per_user": 4},
        "vision": {"quota": 8, "users": ["alice", "bob"]},
        "science": {"quota": 16, "parent": "speech", "users": ["dora"]},
    }
    run(moved, database)
    assert tree(database) == {
        "speech": "root", "vision": "root", "science": "speech", "speech carol": "gres/gpu=4",
        "vision alice": "", "vision bob": "", "science dora": "",
    }  # fmt: skip
    assert run(moved, database)[-1].endswith(NOTHING)
    run(TREE, database)

    # an account of others below one of ours is no victim of its end
    sacctmgr(database, "-i", "add", "account", "theirs", "parent=science", "description=by hand")
    lines = run({"vision": {"users": ["alice"]}}, database, remove=True, complete=False)
    assert "below it is theirs" in lines[-1]
    assert tree(database) == {
        "science": "root gres/gpu=32", "theirs": "science", "vision": "root", "vision alice": "",
    }  # fmt: skip
    sacctmgr(database, "-i", "modify", "account", "theirs", "set", "parent=root")
    run({"vision": {"users": ["alice"]}}, database, remove=True)
    assert tree(database) == {"theirs": "root", "vision": "root", "vision alice": ""}
    run(TREE, database)
    run({"guests": {}}, database, remove=True)
    assert tree(database) == {"theirs": "root", "guests": "root"}
    sacctmgr(database, "-i", "delete", "account", "theirs")


def test_what_others_made_stays(database: Twin) -> None:
    team = {"research": {"quota": 16, "users": ["alice"]}, "theirs": {"users": ["alice"]}}
    sacctmgr(database, "-i", "add", "account", "theirs", "description=by hand", "organization=prod")
    sacctmgr(database, "-i", "add", "user", "zoe", "account=theirs")
    sacctmgr(database, "-i", "add", "qos", "long", "priority=3", "flags=DenyOnLimit")
    sacctmgr(database, "-i", "modify", "qos", "where", "name=normal", "set", "preempt+=long")
    try:
        lines = run(team, database, complete=False)

        assert "the account theirs is there and was not made by this ('by hand')" in lines[-1]
        found = associations(database)
        assert {"theirs||1|||", "theirs|zoe|1|||"} <= {
            re.sub("normal", "", line).rstrip("|") + "|||" for line in found
        }
        assert not [line for line in found if line.startswith("theirs|alice")]
        assert "long|3||cluster|00:00:00" in qos(database)
        assert "normal|50|long,low|cluster|00:00:00" in qos(database)
        # handed over, as the message says
        sacctmgr(
            database, "-i", "modify", "account", "where", "name=theirs", "set", "description=team theirs"
        )
        run(team, database)
        assert [line for line in associations(database) if line.startswith("theirs|alice")]
        assert not [line for line in associations(database) if line.startswith("theirs|zoe")]
    finally:
        run({"research": team["research"]}, database, remove=True)
        sacctmgr(database, "-i", "modify", "qos", "where", "name=normal", "set", "preempt-=long")
        sacctmgr(database, "-i", "delete", "qos", "where", "name=long")


def test_the_default_account_of_a_user_follows_him(database: Twin) -> None:
    def default() -> str:
        rows = sacctmgr(database, "-nP", "show", "user", "format=user,defaultaccount")
        return dict(line.split("|") for line in rows)["dora"]

    both = {"research": {"users": ["dora"]}, "product": {"users": ["dora"]}}
    run(both, database)
    assert default() == "research"

    run(both, database, users={"dora": {"uid": 2001, "team": "product"}})
    assert default() == "product"
    assert run(both, database, users={"dora": {"uid": 2001, "team": "product"}})[-1].endswith(NOTHING)

    # she leaves the team that is her default
    run({"research": {"users": ["dora"]}, "product": {}}, database)
    assert default() == "research"
    # and both at once
    run({"research": {}, "product": {}}, database)
    assert not [line for line in sacctmgr(database, "-nP", "show", "user") if line.startswith("dora")]


def test_a_user_of_the_system_is_no_member(database: Twin) -> None:
    lines = run({"research": {"users": ["daemon", "alice"]}}, database, complete=False)

    assert "daemon is a user of the system: not made a member of research" in lines[-1]
    assert [line for line in associations(database) if line.startswith("research|alice")]
    assert not [line for line in associations(database) if line.startswith("research|daemon")]

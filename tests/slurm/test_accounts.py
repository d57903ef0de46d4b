"""Teams as accounts, in a real slurmdbd: what nodes run, as the script that a person runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_support import environment
from slurm_database import CLUSTER, accounting, missing

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


def test_the_script_is_clean(tmp_path: Path) -> None:
    file = tmp_path / "accounts.sh"
    file.write_text(script(TEAMS))

    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)


@pytest.mark.parametrize(
    ("changes", "base", "why"),
    [
        ({}, "prod", "no `teams`"),
        ({"teams": TEAMS, "orchestrator.accounting": {"mode": "none"}}, "pcs-p6-b200", "nowhere to keep"),
    ],
)
def test_where_there_are_no_accounts_it_says_why(changes: dict[str, Any], base: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        slurm_accounts(resolve(environment(changes, base=base)))


@pytest.fixture(scope="module")
def database() -> Iterator[dict[str, str]]:
    if tools := missing():
        pytest.skip(f"no {', '.join(tools)}: apt-get install slurm-wlm slurmdbd mariadb-server")
    with accounting() as variables:
        yield variables


def run(
    teams: dict[str, Any],
    variables: dict[str, str],
    folder: Path,
    *options: str,
    complete: bool = True,
    **more: Any,
) -> list[str]:
    """Lines that the script prints."""
    file = folder / "accounts.sh"
    file.write_text(script(teams, **more))
    done = subprocess.run(
        ["bash", file, *options], env=variables, capture_output=True, text=True, check=False
    )

    assert done.returncode == (0 if complete else 1), done.stdout + done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


def sacctmgr(variables: dict[str, str], *words: str) -> list[str]:
    done = subprocess.run(["sacctmgr", *words], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def associations(variables: dict[str, str]) -> set[str]:
    fields = "format=account,user,fairshare,grptres,qos,defaultqos,grpjobs,grpsubmit"
    shown = sacctmgr(variables, "-nP", "show", "assoc", f"cluster={CLUSTER}", fields)
    return {line.rstrip("|") for line in shown if not line.startswith("root|")}


def qos(variables: dict[str, str]) -> set[str]:
    fields = "format=name,priority,preempt,preemptmode,gracetime"
    return set(sacctmgr(variables, "-nP", "show", "qos", fields))


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


def test_accounts_are_made_changed_and_closed(database: dict[str, str], tmp_path: Path) -> None:
    foreseen = run(TEAMS, database, tmp_path, "--dry-run")
    assert associations(database) == set()
    done = run(TEAMS, database, tmp_path)
    assert [f"would: {line}" for line in done[:-1]] == foreseen[:-1]
    assert associations(database) == MADE
    assert qos(database) == {
        "low|10||requeue|00:02:00", "normal|50|low|cluster|00:00:00", "high|90|low|cluster|00:00:00",
    }  # fmt: skip

    assert run(TEAMS, database, tmp_path)[-1].endswith(NOTHING)

    run(LATER, database, tmp_path)
    changed = {line for line in MADE if not line.startswith("product||")}
    later = changed | {f"product||4|gres/gpu=8|{ALL}|normal", f"product|carol|1||{ALL}|normal"}
    assert associations(database) == later

    # product is gone, and with it carol, who was in no other team
    left = {name: team for name, team in LATER.items() if name != "product"}
    run(left, database, tmp_path)
    kept = {line for line in later if not line.startswith("product|")}
    assert associations(database) == kept | {f"product||4|gres/gpu=8|{ALL}|normal|0|0"}
    assert run(left, database, tmp_path)[-1].endswith(NOTHING)
    assert not [line for line in sacctmgr(database, "-nP", "show", "user") if line.startswith("carol")]

    # it comes back as it was
    run(LATER, database, tmp_path)
    assert associations(database) == later
    run(left, database, tmp_path, remove=True)
    assert associations(database) == kept
    assert run(left, database, tmp_path)[-1].endswith(NOTHING)


def test_what_others_made_stays(database: dict[str, str], tmp_path: Path) -> None:
    team = {"research": {"quota": 16, "users": ["alice"]}, "theirs": {"users": ["alice"]}}
    sacctmgr(database, "-i", "add", "account", "theirs", "description=by hand", "organization=prod")
    sacctmgr(database, "-i", "add", "user", "zoe", "account=theirs")
    sacctmgr(database, "-i", "add", "qos", "long", "priority=3", "flags=DenyOnLimit")
    sacctmgr(database, "-i", "modify", "qos", "where", "name=normal", "set", "preempt+=long")
    try:
        lines = run(team, database, tmp_path, complete=False)

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
        run(team, database, tmp_path)
        assert [line for line in associations(database) if line.startswith("theirs|alice")]
        assert not [line for line in associations(database) if line.startswith("theirs|zoe")]
    finally:
        run({"research": team["research"]}, database, tmp_path, remove=True)
        sacctmgr(database, "-i", "modify", "qos", "where", "name=normal", "set", "preempt-=long")
        sacctmgr(database, "-i", "delete", "qos", "where", "name=long")


def test_the_default_account_of_a_user_follows_him(database: dict[str, str], tmp_path: Path) -> None:
    def default() -> str:
        rows = sacctmgr(database, "-nP", "show", "user", "format=user,defaultaccount")
        return dict(line.split("|") for line in rows)["dora"]

    both = {"research": {"users": ["dora"]}, "product": {"users": ["dora"]}}
    run(both, database, tmp_path)
    assert default() == "research"

    run(both, database, tmp_path, users={"dora": {"uid": 2001, "team": "product"}})
    assert default() == "product"
    assert run(both, database, tmp_path, users={"dora": {"uid": 2001, "team": "product"}})[-1].endswith(
        NOTHING
    )

    # she leaves the team that is her default
    run({"research": {"users": ["dora"]}, "product": {}}, database, tmp_path)
    assert default() == "research"
    # and both at once
    run({"research": {}, "product": {}}, database, tmp_path)
    assert not [line for line in sacctmgr(database, "-nP", "show", "user") if line.startswith("dora")]


def test_a_user_of_the_system_is_no_member(database: dict[str, str], tmp_path: Path) -> None:
    lines = run({"research": {"users": ["daemon", "alice"]}}, database, tmp_path, complete=False)

    assert "daemon is a user of the system: not made a member of research" in lines[-1]
    assert [line for line in associations(database) if line.startswith("research|alice")]
    assert not [line for line in associations(database) if line.startswith("research|daemon")]


def test_without_accounting_it_says_why(tmp_path: Path) -> None:
    for name, text in {"scontrol": "echo ClusterName = other", "sacctmgr": "echo example"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    (line,) = run(TEAMS, variables, tmp_path, complete=False)
    assert "accounting does not know the cluster other yet (it knows example)" in line

    (tmp_path / "sacctmgr").write_text("#!/bin/sh\necho 'sacctmgr: error: slurmdbd: down' >&2; exit 1\n")
    (line,) = run(TEAMS, variables, tmp_path, complete=False)
    assert line == "accounting cannot be read: sacctmgr: error: slurmdbd: down"

"""Teams as accounts, in a real slurmdbd."""

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


def script(teams: dict[str, Any]) -> str:
    return slurm_accounts(resolve(environment({"teams": teams}, base="prod")))


def test_the_script_is_clean(tmp_path: Path) -> None:
    file = tmp_path / "accounts.sh"
    file.write_text(script(TEAMS))

    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)


def test_quotas_become_shares_and_limits_gpus() -> None:
    lines = re.findall(r"^account .*", script(TEAMS), re.MULTILINE)

    assert lines == ["account research 16 24", "account product 8 -1", "account guests 0 -1"]


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


def run(teams: dict[str, Any], variables: dict[str, str], folder: Path) -> None:
    file = folder / "accounts.sh"
    file.write_text(script(teams))
    done = subprocess.run(["bash", file], env=variables, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def associations(variables: dict[str, str]) -> set[str]:
    shown = subprocess.run(
        [
            "sacctmgr", "--noheader", "--parsable2", "show", "assoc", f"cluster={CLUSTER}",
            "format=account,user,fairshare,grptres,qos,defaultqos",
        ],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line for line in shown.stdout.splitlines() if not line.startswith("root|")}


def test_slurm_takes_it_and_takes_it_again(database: dict[str, str], tmp_path: Path) -> None:
    qos = "high,low,normal"
    expected = {
        f"research||16|gres/gpu=24|{qos}|normal",
        f"research|alice|1||{qos}|normal",
        f"research|bob|1||{qos}|normal",
        f"product||8||{qos}|normal",
        f"product|alice|1||{qos}|normal",
        f"guests||0||{qos}|normal",
    }
    run(TEAMS, database, tmp_path)
    assert associations(database) == expected

    run(TEAMS, database, tmp_path)
    assert associations(database) == expected

    run(LATER, database, tmp_path)
    changed = {line for line in expected if not line.startswith("product||")}
    assert associations(database) == changed | {
        f"product||4|gres/gpu=8|{qos}|normal",
        f"product|carol|1||{qos}|normal",
    }
    shown = subprocess.run(
        ["sacctmgr", "-nP", "show", "qos", "format=name,priority"],
        env=database, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(shown.stdout.split()) == {"low|10", "normal|50", "high|90"}

"""Teams as accounts: the script that a person runs; a real slurmdbd takes it in tests/slurm_twin."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.slurm.accounts import slurm_accounts

pytestmark = pytest.mark.slow

TEAMS: dict[str, Any] = {
    "research": {"quota": 16, "limit": 24, "users": ["alice", "bob"]},
    "product": {"quota": 8, "users": ["alice"]},
    "guests": {},
}


def script() -> str:
    return slurm_accounts(resolve(environment({"teams": TEAMS}, base="prod")))


def test_the_script_is_clean(tmp_path: Path) -> None:
    file = tmp_path / "accounts.sh"
    file.write_text(script())

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


def test_without_accounting_it_says_why(tmp_path: Path) -> None:
    for name, text in {"scontrol": "echo ClusterName = other", "sacctmgr": "echo example"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    def said() -> str:
        done = subprocess.run(
            ["bash", "-c", script()], env=variables, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (1, "")
        return done.stdout.rstrip("\n")

    line = said()
    assert "accounting does not know the cluster other yet (it knows example)" in line

    (tmp_path / "sacctmgr").write_text("#!/bin/sh\necho 'sacctmgr: error: slurmdbd: down' >&2; exit 1\n")
    line = said()
    assert line == "accounting cannot be read: sacctmgr: error: slurmdbd: down"

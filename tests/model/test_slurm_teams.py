"""Teams as accounts of Slurm; tests/slurm/test_accounts.py has a real slurmdbd take them."""

from __future__ import annotations

from typing import Any

from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.model.slurm_teams import slurm_teams

TEAMS: dict[str, Any] = {
    "research": {"quota": 16, "limit": 24, "users": ["alice", "bob"]},
    "product": {"quota": 8, "users": ["alice"]},
    "guests": {},
}


def document(changes: dict[str, Any], base: str = "prod") -> dict[str, Any]:
    return slurm_teams(resolve(environment(changes, base=base)))


def test_quotas_become_shares_and_limits_gpus() -> None:
    accounts = {one["name"]: (one["shares"], one["limits"]) for one in document({"teams": TEAMS})["accounts"]}

    assert accounts == {"research": (16, {"gres/gpu": 24}), "product": (8, {}), "guests": (0, {})}


def test_only_low_gives_way() -> None:
    qos = {one["name"]: one for one in document({"teams": TEAMS})["qos"]}

    assert {name: one["priority"] for name, one in qos.items()} == {"low": 10, "normal": 50, "high": 90}
    assert {name: one["preempts"] for name, one in qos.items()} == {
        "low": [],
        "normal": ["low"],
        "high": ["low"],
    }
    assert (qos["low"]["preempt_mode"], qos["normal"]["preempt_mode"]) == ("requeue", "")


def test_members_come_from_both_sides_and_their_own_team_is_the_default() -> None:
    users = {"bob": {"uid": 2001, "team": "guests"}, "erin": {"uid": 2002}}
    made = document({"teams": TEAMS, "users": users})

    assert {one["name"]: one["users"] for one in made["accounts"]} == {
        "research": ["alice", "bob"], "product": ["alice"], "guests": ["bob"],
    }  # fmt: skip
    assert {one["name"]: one["default_account"] for one in made["users"]} == {
        "alice": "research", "bob": "guests",
    }  # fmt: skip


def test_without_teams_or_accounting_there_is_nothing() -> None:
    nothing: dict[str, list[Any]] = {"qos": [], "accounts": [], "users": []}
    none = {"orchestrator.accounting": {"mode": "none"}}
    for made in (document({}), document({**none, "teams": {"a": {"users": ["alice"]}}}, "pcs-p6-b200")):
        assert {key: made[key] for key in nothing} == nothing

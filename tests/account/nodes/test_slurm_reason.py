"""What reasons of Slurm nodes mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import ROOT

from ultracluster.account.nodes.slurm_reason import explain
from ultracluster.account.wait.slurm import SlurmNode, registered
from ultracluster.config.health import Health

ENFORCE = Health(mode="enforce")
FAULTS: list[dict[str, Any]] = json.loads((ROOT / "lifecycle_scripts/health/faults.json").read_text())[
    "faults"
]


def test_every_row_of_the_fault_table_is_explained() -> None:
    for row in FAULTS:
        for code in [code.replace("*", "999") for code in row["codes"]]:
            found = explain(f"ultracluster:{row['check']}:{code}", ENFORCE)
            assert found and found.meaning and found.next and "no row" not in found.meaning, (row["id"], code)


@pytest.mark.parametrize(
    ("reason", "meaning", "following"),
    [
        ("ultracluster:xid:79", "GPU has fallen off the bus", "rebooted"),
        ("ultracluster:xid:79 : reboot issued [root@2026-11-22T20:27:51]", "fallen off the bus", "rebooted"),
        ("ultracluster:xid:63", "row remap recorded", "when its jobs have ended"),
        ("ultracluster:lustre:silent", "has not answered", "given back after its checks"),
        ("ultracluster:new_check:new_code", "no row", "given back"),
        ("Action:Replace", "HyperPod is asked to replace", "leave it alone"),
        ("Action: Reboot", "in these letters", "nothing happens"),
        ("Prolog error [root@2026-11-22T20:27:51]", "a prolog failed", "slurmd's log"),
        ("Not responding", "lost it", "nodes list"),
    ],
)
def test_known_reasons(reason: str, meaning: str, following: str) -> None:
    found = explain(reason, ENFORCE)
    assert found
    assert meaning in found.meaning
    assert following in found.next


@pytest.mark.parametrize(
    "reason", ["", "bad fan, ask Anna", "Ultracluster:xid:79", "ultracluster:", "gpuhc:xid:79"]
)
def test_reasons_of_people_are_theirs(reason: str) -> None:
    assert explain(reason, ENFORCE) is None


def test_what_happens_next_depends_on_the_environment_file() -> None:
    replaced = "ultracluster:xid:54"  # auxiliary power
    given, kept = (explain(replaced, Health(mode="enforce", replace=replace)) for replace in (True, False))
    assert given and kept and "it is replaced" in given.next and "a person" in kept.next
    dry = explain(replaced, Health())
    assert dry and "dry-run" in dry.next


def test_what_waits_for_a_node_says_why_it_is_drained() -> None:
    from ultracluster.account.nodes.node import Node

    node = Node(id="i-1", group="gpu", status="Running", dns="ip-10-1-0-21.ec2.internal")
    slurm = SlurmNode("ip-10-1-0-21", "", "p", "drained", "ultracluster:xid:79")
    assert "GPU has fallen off the bus" in registered(node, [slurm]).why

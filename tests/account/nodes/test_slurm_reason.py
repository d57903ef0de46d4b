"""What reasons of nodes mean."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account.nodes.node import Node
from ultracluster.account.nodes.slurm_reason import explain, reasons
from ultracluster.account.wait.slurm import SlurmNode, registered
from ultracluster.cli.main import app
from ultracluster.config.health import Health

ENFORCE = Health(mode="enforce")
FAULTS: list[dict[str, Any]] = json.loads((ROOT / "lifecycle_scripts/health/faults.json").read_text())[
    "faults"
]


def test_every_row_of_the_fault_table_is_explained() -> None:
    for row in FAULTS:
        for code in [code.replace("*", "999") for code in row["codes"]]:
            explanation = explain(f"ultracluster:{row['check']}:{code}", ENFORCE)
            assert (
                explanation
                and explanation.meaning
                and explanation.next
                and "no row" not in explanation.meaning
            ), (row["id"], code)


@pytest.mark.parametrize(
    ("reason", "meaning", "following", "by"),
    [
        ("NvidiaXID79Error", "fallen off the bus", "replaces the node", "the EKS node monitoring agent"),
        ("NvidiaXID94Warning: detected unknown XID-94", "contained", "nothing acts", "the EKS node"),
        ("AcceleratedHardwareReady: NvidiaXID13Warning", "application", "the node is well", "the EKS"),
        ("NvidiaDeviceCountMismatch", "fewer GPUs", "no repair of it is published", "the EKS"),
        ("DCGMDiagnosticFailure", "DCGM test", "no repair acts on it", "the EKS"),
        ("NeuronHasError_DMA_ERROR", "DMA engine", "replaces the node", "the Neuron node problem"),
    ],
)
def test_words_of_agents_on_kubernetes(reason: str, meaning: str, following: str, by: str) -> None:
    explanation = explain(reason)
    assert (
        explanation
        and meaning in explanation.meaning
        and following in explanation.next
        and explanation.by.startswith(by)
    )
    assert explain("NvidiaAcceleratedHardwareIsReady") is None is explain("XidHardwareFailure")


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
        ("Not responding", "has not answered", "nodes list"),
        ("gres/gpu count reported lower than configured (7 < 8)", "fewer devices", "nvidia-smi -L"),
        ("gres/gpu count repor", "fewer devices", "nodes reboot"),
        ("Low RealMemory (reported:1900000 < 100.00% of configured:2000000)", "less memory", "slurmd -C"),
        ("Low RealMemory (repo", "less memory", "slurmd -C"),
        ("Kill task failed", "did not end", "dmesg"),
        ("batch job complete failure", "end of a batch job", "slurmd's log"),
        ("Low TmpDisk", "scratch", "df -h"),
        ("Duplicate jobid", "runs a job of that number", "StateSaveLocation"),
        ("reboot ASAP", "takes no jobs", "cancel_reboot"),
        ("Reboot ASAP : reboot issued [root@2026-11-22T20:27:51]", "was started", "leave it alone"),
        ("(Code:InsufficientInstanceCapacity)Error while launching", "no capacity", "capacity search"),
        ("(Code:InsufficientIn", "no capacity", "tried again"),
        ("(Code:Odd)Failure when resuming nodes", "could not be launched", "slurm_resume.log"),
        ("Low socket*core*thread count, Low CPUs", "fewer CPUs than", "slurmd -C"),
    ],
)
def test_known_reasons(reason: str, meaning: str, following: str) -> None:
    explanation = explain(reason, ENFORCE)
    assert explanation
    assert meaning in explanation.meaning
    assert following in explanation.next


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "bad fan, ask Anna",
        "Ultracluster:xid:79",
        "ultracluster:",
        "gpuhc:xid:79",
        "Low",
        "gres/gpu",
        "Kill it",
        "Kill task of Anna",
        "(Code:x)",
        "Not responding, Anna looks",
        "a reboot ASAP",
    ],
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
    node = Node(id="i-1", group="gpu", status="Running", dns="ip-10-1-0-21.ec2.internal")
    slurm = SlurmNode("ip-10-1-0-21", "", "p", "drained", "ultracluster:xid:79")
    assert "GPU has fallen off the bus" in registered(node, [slurm]).why


@pytest.mark.parametrize("row", reasons(), ids=lambda row: row["id"])
def test_a_published_reason_is_known_whole_and_cut_off(row: dict[str, Any]) -> None:
    assert row["by"] and row["source"]
    for text in row["texts"]:
        whole = re.sub(r"(?<![a-z])\*(?![a-z])", "7", text.replace("**", "x"))
        explanation = explain(whole, ENFORCE)
        assert explanation, whole
        assert row["meaning"] in explanation.meaning and row["by"] in explanation.by, whole
        for length in range(min(20, len(whole)), len(whole)):
            assert explain(f"{whole[:length]}+", ENFORCE), whole[:length]
        assert explain(f"{whole} [slurm@2026-11-22T20:27:51]", ENFORCE) == explanation


def test_of_a_text_that_is_cut_off_every_reason_is_named() -> None:
    explanation = explain("gres/gpu count", ENFORCE)
    assert explanation and explanation.meaning.count("; or, for the text is cut off: ") == 2


def test_what_is_not_known_is_not_denied() -> None:
    def ask(reason: str) -> Any:
        return CliRunner().invoke(
            app, ["doctor", str(ROOT / "environments" / "dev.yaml"), "--reason", reason]
        )

    result = ask("bad fan, ask Anna")
    assert result.exit_code == 1 and result.stdout.startswith("not one that we know: ")
    result = ask("Kill task failed")
    assert result.exit_code == 0 and "\nwritten by: slurmd\nnext: " in result.stdout

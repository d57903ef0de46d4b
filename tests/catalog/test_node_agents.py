"""What agents on nodes of Kubernetes report: rows that are there, and what nobody publishes as silence."""

from __future__ import annotations

import pytest
from project import ROOT

from tools import faults_page
from ultracluster.catalog.node_agents import (
    Agent,
    grave_faults,
    hardware_of,
    node_agents,
    reported,
    rows_of,
)
from ultracluster.catalog.node_faults import node_faults

AGENTS = {one.id: one for one in node_agents()}
ROWS = {row.id: row for row in node_faults()}
REPAIRED = {46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
"""aws/eks-node-monitoring-agent 51af549, monitors/nvidia/dcgm/dcgm_policies.go, WellKnownXidCodes."""


def kinds(agent: str, row: str) -> set[str]:
    return {one.kind for one in AGENTS[agent].reports_of(ROWS[row])}


@pytest.mark.parametrize("agent", node_agents(), ids=lambda agent: agent.id)
def test_a_report_is_of_a_row_and_says_what_it_is(agent: Agent) -> None:
    assert agent.source and agent.date and agent.hardware and agent.notes
    for one in agent.reports:
        assert bool(one.reason) is not bool(one.what), one
        assert "*" in one.fault or rows_of(one), one
        assert one.kind == "condition" or not one.repair, "nothing acts on an event"


def test_xids_that_the_agent_of_eks_makes_a_condition() -> None:
    own = [one for one in AGENTS["eks"].reports if one.reason.startswith("NvidiaXID")]
    assert {int(one.fault[4:]) for one in own if "*" not in one.fault} == REPAIRED


@pytest.mark.parametrize(
    ("agent", "row", "expected"),
    [
        ("eks", "xid-79", {"condition"}),
        ("eks", "xid-167", {"event"}),
        ("eks", "xid-154-reboot", {"event"}),
        ("eks", "xid-149-fatal", {"event"}),
        ("eks", "xid-79-bus", set()),
        ("eks", "xid-uvm", set()),
        ("eks", "sxid-fatal", set()),
        ("eks", "ecc-remap_failure", set()),
        ("hyperpod", "xid-79", set()),
        ("hyperpod", "gpu_count-missing", {"condition"}),
        ("neuron", "neuron-line-hbm", {"condition"}),
        ("neuron", "neuron-driver", set()),
        ("npd", "efa-line-admin", set()),
    ],
)
def test_what_is_published_of_a_row(agent: str, row: str, expected: set[str]) -> None:
    assert kinds(agent, row) == expected


def test_the_mildest_agent_is_not_taken_for_all() -> None:
    silent = [row.id for row in grave_faults() if not AGENTS["eks"].reports_of(row)]
    assert "kernel-ena-dead" in silent and hardware_of(ROWS["kernel-ena-dead"]) == "host"
    assert {hardware_of(ROWS[name]) for name in ("sxid-fatal", "neuron-sram")} == {"nvidia", "neuron"}


def words(line: str) -> list[tuple[str, str]]:
    return [(agent.id, report.fault_of(number)) for agent, report, number in reported(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AcceleratedHardwareReady False NvidiaXID79Error detected", [("eks", "xid:79")]),
        ('"reason": "NvidiaXID94Warning"', [("eks", "xid:94")]),
        ("NEURONHASERROR_DMA_ERROR", [("neuron", "neuron:line_dma")]),
        ("NvidiaXID79Errors", []),
        ("noNvidiaXID79Error", []),
        ("NvidiaXIDError", []),
        ("NvidiaXID794949Warning", []),
        ("NvidiaAcceleratedHardwareIsReady", []),
        ("KernelHasNoDeadlock NeuronHasNoError FilesystemIsNotReadOnly", []),
    ],
)
def test_words_of_agents(line: str, expected: list[tuple[str, str]]) -> None:
    assert words(line) == expected


def test_the_page_of_health_names_each_row_that_nobody_repairs() -> None:
    page = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    assert page == faults_page.with_agents(page), "run `make generate`"
    block = page.partition(faults_page.BEGIN)[2].partition(faults_page.END)[0]
    for agent in node_agents():
        (line,) = [one for one in block.splitlines() if one.startswith(f"| {agent.title} |")]
        *_, events, silent, _ = line.split("|")
        for row in agent.grave_faults():
            if kinds(agent.id, row.id) != {"condition"}:
                assert f"`{row.id}`" in (events if kinds(agent.id, row.id) else silent), row.id

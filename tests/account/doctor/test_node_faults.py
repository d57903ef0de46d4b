"""`doctor` reads faults of nodes by the nodes' own table, in whatever log they stand."""

from __future__ import annotations

import io
import json

import pytest
from rows import for_each

from ultracluster.account.doctor.examination import Examination, Quote
from ultracluster.account.doctor.log_files import read_logs
from ultracluster.account.doctor.node_faults import benign_faults, node_fault_diagnoses
from ultracluster.catalog.node_faults import Fault, node_faults

LINE = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
SHADOWED = {"kernel-nvme-dead", "kernel-nvme-detached"}
"""Rows for one kind of disk: a pasted line does not tell which the controller is."""
WITH_LINES = [row for row in node_faults() if row.line and not row.generations and row.id not in SHADOWED]


def ids(text: str, *generations: str) -> list[str]:
    """Of every row that a text stands for, whether or not it asks something of the node."""
    found = [
        diagnose.failure.id.removeprefix("fault-") for diagnose in node_fault_diagnoses([text], generations)
    ]
    return found + [fault.id for fault, _ in benign_faults([text], generations)]


@for_each("row", WITH_LINES, ids=lambda row: row.id)
def test_every_form_of_a_fault_is_read_in_any_log(row: Fault) -> None:
    for form in (row.line, *(form for form, _ in row.forms)):
        found = ids(form)
        assert len(found) == 1, form
        for before in (
            "[ 1234.567890] ",
            "Nov 21 08:00:00 ip-10-1-0-17 kernel: ",
            "2026-11-21T08:00:00.000000+00:00 ip-10-1-0-17 kernel: [ 1234.567890] ",
            "kern  :err   : [Sat Nov 21 08:00:00 2026] ",
        ):
            assert ids(before + form) == found, before + form
        assert ids(form.upper()) == found


@pytest.mark.parametrize("row", [row for row in node_faults() if row.near], ids=lambda row: row.id)
def test_a_near_miss_is_not_that_fault(row: Fault) -> None:
    for near in row.near:
        assert row.id not in ids(near), near


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        "XID 79 on GPU 3 in the last hour",
        "the last XID of GPU 0 is 79",
        "node n1 reason set to: ultracluster:xid:79",
    ],
)
def test_a_gpu_that_fell_off_the_bus_has_a_row_of_its_own(text: str) -> None:
    failures = [diagnose.failure for diagnose in Examination(quotes=[Quote("log:1", text)]).diagnoses]
    assert failures[0].id.startswith("fault-xid-79") and failures[0].page == "runbooks/GpuXidReboot.md"
    assert {failure.page for failure in failures[1:]} <= {"faults.md"}
    assert failures[0].run.endswith(("ultracluster:xid:79", "ultracluster:xid:bus"))
    other = text.replace("79", "790").replace("fallen off", "left")
    assert not [identifier for identifier in ids(other) if identifier.startswith("xid-79")]


def test_an_application_error_asks_nothing_of_the_node() -> None:
    line = (
        "NVRM: Xid (PCI:0000:9b:00): 13, pid=4711, name=python, Graphics Exception: ESR 0x404490=0x80000001"
    )
    assert node_fault_diagnoses([line]) == []
    assert [(fault.id, times) for fault, times in benign_faults([line, line])] == [("xid-13", 2)]


def test_the_message_of_a_json_line_is_read() -> None:
    stream = io.BytesIO(json.dumps({"_TRANSPORT": "kernel", "MESSAGE": LINE}).encode())
    assert [diagnose.failure.id for diagnose in read_logs(["-"], stream).diagnoses] == ["fault-xid-79"]


def test_a_row_for_some_generations_is_said_only_of_them() -> None:
    rows = [row for row in node_faults() if row.generations and row.line and row.severity == "critical"]
    assert rows
    said = 0
    for row in rows:
        said += row.id in ids(row.line, row.generations[0])
        assert row.id not in ids(row.line), "of an unknown generation nothing grave is said"
    assert said > len(rows) // 2


@pytest.mark.parametrize(
    ("status", "row"),
    [
        ("NRT_EXEC_HW_ERR_HBM_UE", ["neuron-line-hbm"]),
        ("nrt_execute status=1202 NRT_EXEC_HW_ERR_NC_UE", ["neuron-line-core"]),
        ("NRT_EXEC_HW_ERR_DMA_ABORT", ["neuron-line-dma"]),
        ("NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE", ["neuron-line-repairable"]),
        ("NRT_EXEC_HW_ERR_COLLECTIVES", []),  # a rank that hangs, not this node
        ("NRT_EXEC_COMPLETED_WITH_NUM_ERR", []),
    ],
)
def test_statuses_of_neurons_runtime_name_the_fault_of_the_device(status: str, row: list[str]) -> None:
    assert ids(status) == ids(status.lower()) == row


@pytest.mark.parametrize(
    ("word", "generation", "row"),
    [
        ("NvidiaXID74Error", "hopper", "xid-74"),
        ("NvidiaXID74Error", "blackwell", "xid-74-other"),
        ("NvidiaXID95Error", "ampere", "xid-95-a100"),
        ("NvidiaXID95Error", "hopper", "xid-95"),
        ("XID 74 on GPU 3", "hopper", "xid-74"),
        ("DCGMHealthCode85", "hopper", "dcgm-pending"),
        ('{"condition: ":"XID Error","data":{"ErrNum":48}}', "hopper", "xid-48"),
    ],
)
def test_a_word_without_the_drivers_line_is_judged_by_the_generation(
    word: str, generation: str, row: str
) -> None:
    assert ids(word, generation) == ids(word.upper(), generation) == [row]


def test_a_number_of_dcgm_that_nobody_lists_has_no_row() -> None:
    assert ids("DCGMHealthCode7777") == ids("DCGMFieldError230") == []


def test_the_word_of_an_agent_comes_before_its_line_for_unknown_hardware() -> None:
    line = "NeuronHasError_DMA_ERROR nd0: NEURON_HW_ERR=DMA_ERROR"
    assert ids(line) == ["neuron-line-dma"]


def test_a_condition_of_several_faults_names_each() -> None:
    line = (
        "AcceleratedHardwareReady False NvidiaXID64Error detected XID-95 on the instance, review kernel logs "
        "for additional information.; detected XID-64 on the instance, review kernel logs"
    )
    assert sorted(ids(line, "hopper")) == ["xid-64", "xid-95"]
    assert ids("we have never detected XID-9x, nor XID-79 here") == []


def test_what_a_repair_does_and_what_the_row_asks_do_not_contradict() -> None:
    (repaired,) = node_fault_diagnoses(["NvidiaNVLinkError: detected 3 NVLink errors"], ["hopper"])
    assert repaired.failure.do.startswith("before node repair acts")
    (recorded,) = node_fault_diagnoses(["NvidiaXID154Warning"], ["hopper"])
    assert recorded.failure.do.startswith("nothing happens by itself")

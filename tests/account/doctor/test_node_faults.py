"""`doctor` reads faults of nodes by the nodes' own table, in whatever log they stand."""

from __future__ import annotations

import io
import json

import pytest

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
    found = [one.failure.id.removeprefix("fault-") for one in node_fault_diagnoses([text], generations)]
    return found + [fault.id for fault, _ in benign_faults([text], generations)]


@pytest.mark.parametrize("row", WITH_LINES, ids=lambda row: row.id)
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
    found = [one.failure for one in Examination(quotes=[Quote("log:1", text)]).diagnoses]
    assert found[0].id.startswith("fault-xid-79") and found[0].page == "runbooks/GpuXidReboot.md"
    assert {one.page for one in found[1:]} <= {"faults.md"}
    assert found[0].run.endswith(("ultracluster:xid:79", "ultracluster:xid:bus"))
    other = text.replace("79", "790").replace("fallen off", "left")
    assert not [one for one in ids(other) if one.startswith("xid-79")]


def test_an_application_error_asks_nothing_of_the_node() -> None:
    line = (
        "NVRM: Xid (PCI:0000:9b:00): 13, pid=4711, name=python, Graphics Exception: ESR 0x404490=0x80000001"
    )
    assert node_fault_diagnoses([line]) == []
    assert [(fault.id, times) for fault, times in benign_faults([line, line])] == [("xid-13", 2)]


def test_the_message_of_a_json_line_is_read() -> None:
    stream = io.BytesIO(json.dumps({"_TRANSPORT": "kernel", "MESSAGE": LINE}).encode())
    assert [one.failure.id for one in read_logs(["-"], stream).diagnoses] == ["fault-xid-79"]


def test_a_row_for_some_generations_is_said_only_of_them() -> None:
    rows = [row for row in node_faults() if row.generations and row.line and row.severity == "critical"]
    assert rows
    said = 0
    for row in rows:
        said += row.id in ids(row.line, row.generations[0])
        assert row.id not in ids(row.line), "of an unknown generation nothing grave is said"
    assert said > len(rows) // 2

"""The table of faults: its form, its meanings, and that nothing on a node says what it does not have."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from project import ROOT
from rows import for_each

from tools import faults_page
from ultracluster.catalog import instance_types
from ultracluster.catalog.node_faults import (
    ACTIONS,
    Fault,
    about_faults,
    faults_of_reason,
    generations,
    node_faults,
)

HEALTH = ROOT / "lifecycle_scripts" / "health"
TABLE: dict[str, Any] = json.loads((HEALTH / "faults.json").read_text(encoding="utf-8"))
ROWS = {row.id: row for row in node_faults()}
COMM = 15
"""Characters of a process's name, which its user chooses and drivers print."""


def rank(action: str) -> int:
    """How much it takes from the cluster; a node stays with `none` and `requeue`, and `drain` says no end."""
    return max(ACTIONS.index("replace" if action == "drain" else action), 1)  # type: ignore[arg-type]


def test_form() -> None:
    schema = json.loads((HEALTH / "faults.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert not list(
        Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).iter_errors(TABLE)
    )
    assert len(ROWS) == len(TABLE["faults"]), "an id is used twice"
    known = {one.name for one in generations()}
    assert not [row.id for row in ROWS.values() if not set(row.generations) <= known]


def test_every_accelerator_has_a_generation() -> None:
    of = [name for one in generations() for name in one.accelerators]
    assert len(of) == len(set(of)), "in two generations"
    names = {one.accelerator.name for one in instance_types().values() if one.accelerator}
    assert names - set(of) == set()


MEANINGS = {
    # NVIDIA's own; a widely copied article has 63 and 64 wrong
    "xid-63": ("succeeded", "warn", "none", "reset"),
    "xid-64": ("remap failed", "critical", "replace", "none"),
    "xid-64-pending": ("already waits", "warn", "none", "reset"),
    "xid-79": ("fallen off the bus", "critical", "reboot", "none"),
    "xid-94": ("contained memory error: the application", "warn", "requeue", "reset"),
    "xid-95": ("uncontained", "critical", "reset", "none"),
    "xid-95-a100": ("without MIG", "critical", "reboot", "none"),
    "xid-48": ("double-bit", "critical", "reset", "none"),
    "xid-74": ("NVLink", "critical", "reset", "none"),
    "xid-119": ("GSP", "critical", "reset", "none"),
    "xid-120": ("GSP", "critical", "reset", "none"),
    "xid-154-reboot": ("reboot", "critical", "reboot", "none"),
    "xid-149-fatal": ("fatal", "critical", "reset", "none"),
    "xid-149": ("not fatal", "warn", "none", "none"),
    "xid-31": ("application's error", "none", "none", "none"),
    "xid-unused": ("do not use", "warn", "none", "none"),
    "xid-unknown": ("does not know", "warn", "none", "none"),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_meanings(name: str) -> None:
    row = ROWS[name]
    words, *rest = MEANINGS[name]
    assert words in row.meaning
    assert [row.severity, row.action, row.when_idle] == rest


@for_each("row", [row for row in ROWS.values() if row.other], ids=lambda row: row.id)
def test_the_milder_one_acts(row: Fault) -> None:
    mildest = min(rank(one.action) for one in row.other)
    # of a 64 the health reference asks for a replacement, and so do those who name it
    assert rank(row.action) <= mildest


@for_each("row", ROWS.values(), ids=lambda row: row.id)
def test_what_comes_again_is_graver(row: Fault) -> None:
    if row.repeats:
        assert rank(row.repeats.action) >= rank(row.action)
        assert row.repeats.severity == "critical"
    if row.severity == "critical" and row.action in ("reset", "reboot"):
        assert row.repeats or row.id == "gpu_count-mismatch", "reset or rebooted for ever"


def test_every_xid_of_the_driver_has_a_row() -> None:
    """Up to the highest that its header names."""
    codes = [code for row in ROWS.values() if row.check == "xid" for code in row.codes]
    assert set(map(str, range(1, 178))) <= set(codes)
    plain = [
        c
        for row in ROWS.values()
        if row.check == "xid" and not (row.text or row.generations)
        for c in row.codes
    ]
    # every code has a row for any text and generation, and the last one is for all others
    assert set(codes) == set(plain)
    assert [row.codes for row in ROWS.values() if row.check == "xid"][-1] == ("*",)


def test_a_name_of_a_process_decides_nothing() -> None:
    """Drivers print it into their lines: no pattern may fit into it, or be found beginning in it."""
    for row in TABLE["faults"]:
        for expression in (row.get("text"), row.get("pattern")):
            if expression is None:
                continue
            found = re.search(
                expression, row["line"] if row.get("pattern") else row["line"].split("): ", 1)[1]
            )
            assert found, row["id"]
            assert len(found[0]) > COMM, f"{row['id']}: {found[0]!r} fits into a name"
        if "pattern" in row and row["check"] != "neuron":
            assert row["pattern"].startswith("^"), f"{row['id']}: any line could hold it"


def test_checks_name_rows_and_rows_are_named() -> None:
    named: dict[str, set[str]] = {}
    for file in sorted(HEALTH.glob("*.sh")):
        text = file.read_text(encoding="utf-8")
        named[file.stem] = set(re.findall(r"health::fault ([a-z_]+)", text))
    named["gpu_count"] |= {"recovery_reset", "recovery_reboot", "recovery_drain", "hung"}
    named["gpu_count"] |= {"none", "power", "driver", "interrupt", "library", "inforom", "lost"}  # GPU_EXITS
    named["neuron"] |= {"sram", "hbm", "hbm_repairable"}
    named["dcgm"] |= {"isolate", "links", "pending", "setting", "reset", "fail"}
    named["lustre"] |= {"silent", "hung"}  # of run_check.sh
    for check, codes in named.items():
        rows = {
            code
            for row in TABLE["faults"]
            if row["check"] == check and "pattern" not in row and check != "xid"
            for code in row["codes"]
        }
        assert codes == rows, check
    checks = {row.check for row in ROWS.values()}
    assert checks - set(named) == {"sxid", "kernel"}


def test_reasons() -> None:
    assert [row.id for row in faults_of_reason("ultracluster:xid:79")] == [
        "xid-79",
        "xid-79-bus",
        "xid-79-lost",
    ]
    assert [row.id for row in faults_of_reason("ultracluster:xid:95 on 0000:53:00")] == [
        "xid-95-a100",
        "xid-95",
    ]
    assert [row.id for row in faults_of_reason("ultracluster:xid:99999")] == ["xid-unknown"]
    assert [row.action for row in faults_of_reason("ultracluster:gpu_count:missing")] == ["reboot"]
    for foreign in (
        "",
        "Prolog error",
        "Action:Replace",
        "gpuhc:xid:79",
        "ultracluster:",
        "ultracluster:none:of",
    ):
        assert faults_of_reason(foreign) == ()


def test_the_page_is_written_from_it() -> None:
    assert faults_page.page() == (ROOT / "docs" / "faults.md").read_text(encoding="utf-8"), (
        "run `make generate`"
    )


def test_health_page_says_what_the_article_has_wrong() -> None:
    text = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    assert "63" in text and "64" in text and "article" in text
    for check in sorted({row.check for row in ROWS.values()} - {"sxid", "kernel"}):
        assert f"`{check}`" in text, f"docs/health.md does not name {check}"


def test_nodes_have_python_3_9() -> None:
    for file in HEALTH.glob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_about() -> None:
    assert about_faults()["date"] == "2026-11-27"

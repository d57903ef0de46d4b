"""The watcher of the kernel's log: recorded lines and what becomes of them, repeats, and garbage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from depth import examples
from health_watcher import HOUR, MINUTE, SECOND, TABLE, XID_13, XID_74, XID_79, entry, faults, watch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def one(line: str, generation: str = "hopper", disks: dict[str, str] | None = None) -> dict[str, Any] | None:
    found = watch.findings([line], TABLE, generation, disks)
    assert len(found) <= 1
    return found[0] if found else None


def watcher(state: Any = None) -> Any:
    return watch.Watcher(TABLE, "hopper", state)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("NVRM: Xid (", "): 79, GPU has fallen off the bus."),
        ("XFS (nvme1n1): ", "Shutting down filesystem"),
        ("x\nNVRM: Xid (", "): 79, a"),
        ("nd0", " NEURON_HW_ERR=NC_UNCORRECTABLE_ERROR"),
    ],
)
def test_a_process_that_crashes_forges_no_line_by_its_name_and_its_file(name: str, file: str) -> None:
    """As x86's kernel reports it: whoever runs a job chooses both names."""
    line = f"{name[:15]}[4711]: segfault at 0 ip 0000555555555131 sp 00007fffffffe0d0 error 6 in {file}[55+1]"
    assert [one(line, generation) for generation in ("hopper", "trainium", "")] == [None, None, None]


@pytest.mark.parametrize(
    ("name", "fatal"),
    [
        ("xid-95", True),
        ("xid-79", True),
        ("sxid-fatal", True),
        ("neuron-line-hbm", True),
        ("xid-94", False),
        ("xid-63", False),
        ("xid-31", False),
        ("kernel-readonly", False),
        ("gpu_count-missing", False),  # a check may be wrong everywhere
        ("lustre-silent", False),
    ],
)
def test_what_ends_running_work_by_the_word_of_the_driver(name: str, fatal: bool) -> None:
    row = watch.faults.by_id(TABLE, name)
    assert watch.faults.fatal(row) is fatal
    assert watch.faults.fatal({**row, "fatal": not fatal}) is not fatal


# --- recorded lines ---

RECORDED = [row for row in TABLE["faults"] if "line" in row]
ELSEWHERE = {"xid-74-other": "blackwell", "xid-142-other": "hopper"}
"""Rows for the generations that another row of the code is not for."""


FORMS = [(row, form["line"]) for row in RECORDED for form in ({"line": row["line"]}, *row.get("forms", ()))]
NEAR = [(row, line) for row in RECORDED for line in row.get("near", ())]


def of(row: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """A generation that the row is for, and disks of its kind."""
    generation: str = ELSEWHERE.get(row["id"], "") or row.get("generations", ["hopper"])[0]
    return generation, dict.fromkeys(("nvme1", "nvme2"), row["disk"]) if "disk" in row else {}


@pytest.mark.parametrize(("row", "line"), FORMS, ids=[row["id"] for row, _ in FORMS])
def test_a_recorded_line_comes_to_its_row(row: dict[str, Any], line: str) -> None:
    generation, disks = of(row)
    found = one(line, generation, disks)
    assert found is not None
    assert (found["fault"], found["action"]) == (row["id"], row["action"])
    assert found["check"] == row["check"]
    assert found["code"] in row["codes"] or row["codes"] == ["*"]
    assert found["result"] == faults.RESULTS[row["severity"]]
    # as the journal hands it out, it is the same
    assert watch.findings([entry(line)], TABLE, generation, disks) == [found]


@pytest.mark.parametrize(("row", "line"), NEAR, ids=[row["id"] for row, _ in NEAR])
def test_a_line_that_looks_alike_does_not_come_to_the_row(row: dict[str, Any], line: str) -> None:
    found = one(line, *of(row))
    assert found is None or found["fault"] != row["id"]
    # it does nothing, unless it is a logged line of another row
    logged = {line for _, line in FORMS} | {other for _, other in NEAR if other.startswith("NVRM: Xid")}
    assert found is None or found["result"] != "critical" or line in logged or row["check"] == "sxid"


@pytest.mark.parametrize("row", [row for row in RECORDED if row["check"] == "xid"], ids=lambda row: row["id"])
def test_an_xid_that_is_quoted_or_longer_is_none(row: dict[str, Any]) -> None:
    line = row["line"]
    for near in (f"python3: {line}", line.replace("NVRM:", "NVRM"), line.replace("Xid (PCI", "Xid PCI")):
        if near != line:
            assert one(near, *of(row)) is None


def test_a_number_decides_before_the_words_fatal_and_non_fatal() -> None:
    """SXids whose word says less, or more, than NVIDIA's guide."""
    line = "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): {}, {}, Link 57 words"
    told = {
        (number, word): (one(line.format(number, word)) or {})["action"]
        for number in (12028, 11004, 22013, 11012, 20034)
        for word in ("Fatal", "Non-fatal")
    }
    assert {action for (number, _), action in told.items() if number in (12028, 11004)} == {"reboot"}
    assert {action for (number, _), action in told.items() if number in (22013, 11012)} == {"none"}
    assert (told[20034, "Fatal"], told[20034, "Non-fatal"]) == ("reset", "none")


@pytest.mark.parametrize(
    ("bits", "fault"),
    [
        ("0x025001c6", "xid-149-fatal"),  # sub-code 0x25
        ("0x026001c6", "xid-149-user"),
        ("0x028001c6", "xid-149-user"),
        ("0x02a001c6", "xid-149-fatal"),
        ("0x02600011", "xid-149-user"),  # the other form of the table
        ("0x02500011", "xid-149-fatal"),
        ("0x02600226", "xid-149-fatal"),  # no link event
        ("0x0a6001c6", "xid-149-user"),  # bits above the sub-code say nothing
    ],
)
def test_the_first_word_of_149_decides(bits: str, fault: str) -> None:
    line = f"NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 ({bits} 0x00000000)"
    found = one(line, "blackwell")
    assert found is not None
    assert found["fault"] == fault


def test_the_words_of_a_clean_up_name_the_fault() -> None:
    line = "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid {}"
    told = {code: one(line.format(code)) or {} for code in (31, 45, 79, 95, 9999)}
    assert {code: (found["code"], found["action"]) for code, found in told.items()} == {
        31: ("31", "none"),
        45: ("45", "none"),
        79: ("79", "reboot"),
        95: ("95", "reset"),
        9999: ("45", "none"),
    }


def test_a_disk_is_judged_by_its_kind() -> None:
    line = "nvme nvme1: Disabling device after reset failure: -19"
    told = {kind: one(line, "hopper", {"nvme1": kind}) or {} for kind in ("instance-store", "ebs", "")}
    assert [found["action"] for found in told.values()] == ["replace", "none", "none"]
    assert (one(line) or {})["fault"] == "kernel-nvme-gone"


def test_the_kinds_of_disks_outlive_them(tmp_path: Path) -> None:
    for name, model in (
        ("nvme0", "Amazon Elastic Block Store"),
        ("nvme1", "Amazon EC2 NVMe Instance Storage"),
    ):
        (tmp_path / "sys/class/nvme" / name).mkdir(parents=True)
        (tmp_path / "sys/class/nvme" / name / "model").write_text(model + "   \n")
    kinds = faults.kinds_of_disks(str(tmp_path))
    assert kinds == {"nvme0": "ebs", "nvme1": "instance-store"}
    state = json.loads(json.dumps(watch.Watcher(TABLE, "hopper", None, kinds).state()))
    later = watch.Watcher(TABLE, "hopper", state, {})
    found = later.look(entry("nvme nvme1: Disabling device after reset failure: -19"))
    assert found["action"] == "replace"
    assert watch.Watcher(TABLE, "hopper", {"disks": {"nvme1": ["ebs"], "nvme2": "tape"}}).disks == {}


@pytest.mark.parametrize("row", [row for row in RECORDED if "generations" in row], ids=lambda row: row["id"])
def test_of_an_unknown_generation_nothing_that_only_some_have_ends_a_node(row: dict[str, Any]) -> None:
    for generation in ("", "rubin"):
        found = one(row["line"], generation)
        plain = [r for r in TABLE["faults"] if r["check"] == row["check"] and "generations" not in r]
        if found and found["result"] == "critical":
            assert found["fault"] in {r["id"] for r in plain}


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        (XID_79, "0000:53:00"),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9)", "0000:01:00"),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:00 GPU-CI:00): 31, pid=12345, name=python, MMU Fault",
            "0000:3b:00",
        ),
        ("NVRM: Xid (PCI:00000000:9B:00.0): 79, GPU has fallen off the bus.", "0000:9b:00"),
        ("NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT", "0008:01:00"),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "0000:03:00"),
        ("NVRM: Xid (PCI:0000:10:1c): 63", "0000:10:1c"),
        ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", "0000:18:00"),
        ("nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up", "nvswitch2"),
        ("NVRM: Xid (somewhere): 79, GPU has fallen off the bus.", None),
    ],
)
def test_the_device(line: str, gpu: str | None) -> None:
    found = one(line)
    assert found is not None
    assert found.get("gpu") == gpu


@pytest.mark.parametrize(
    "line",
    [
        "",
        "usb 1-1: new device",
        "NVRM: loading NVIDIA UNIX Open Kernel Module",
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:53:00)",
        "NVRM: Xid (PCI:0000:53:00): many",
        "NVRM: Xid (PCI:0000:53:00): 123456, a number that is none",
        "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 37 Sub-engine 00",
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Data {0x10000000, 0x10000000}",
        # what is quoted is not logged
        f"python3[4242]: {XID_79}",
        f"audit: comm={XID_79}",
        f"[  12.3] {XID_79}",
        f"\n{XID_79}",
        "systemd[1]: NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR",  # no accelerator of that maker
    ],
)
def test_lines_that_are_no_fault(line: str) -> None:
    assert one(line) is None


@pytest.mark.parametrize("transport", ["syslog", "journal", "stdout", "audit", "driver", "", None])
def test_only_what_the_kernel_has_logged_counts(transport: Any) -> None:
    assert watch.findings([entry(XID_79, transport=transport)], TABLE, "hopper") == []
    assert watch.findings([{"MESSAGE": XID_79}], TABLE, "hopper") == []


def test_a_process_with_a_telling_name() -> None:
    """Drivers print the 15 characters that its user chose, whatever they are."""
    for name in (
        "A Fatal XC0 i0 ",
        "(Drain and Rese",
        "a, TREX Fatal X",
        "to 0x2 (Node Re",
        "already pending",
        "Shutting down f",
    ):
        assert len(name) <= 15
        found = one(
            f"NVRM: Xid (PCI:0000:53:00): 145, pid=42, name={name}, RLW_RXPIPE Nonfatal XC0 i0 Link 13",
            "blackwell",
        )
        assert found is not None and found["result"] == "warn", name
        found = one(f"NVRM: Xid (PCI:0000:53:00): 13, pid=42, name={name}, Graphics Exception")
        assert found is not None and found["result"] == "ok", name
        found = one(
            f"NVRM: Xid (PCI:0000:53:00): 64, pid=42, name={name}, "
            "Row Remapper Error: (0x0000000000abcdef) - Row Remapping table is full"
        )
        assert found is not None and found["action"] == "replace", name


def test_xids_are_for_nodes_with_such_gpus() -> None:
    """Whoever may use a Neuron device can have its driver print a line."""
    assert one(XID_79, "trainium") is None
    assert one(XID_79, "") is not None


# --- repeats and rates ---


def test_a_burst_is_told_once_a_minute_with_its_number() -> None:
    looking = watcher()
    told = [found for second in range(120) if (found := looking.look(entry(XID_13, second * SECOND)))]
    assert [found.get("count") for found in told] == [None, 60]
    assert all(found["result"] == "ok" for found in told)
    # another GPU, another fault: at once
    assert looking.look(entry(XID_13.replace(":53:", ":54:"), 120 * SECOND))
    assert looking.look(entry(XID_79, 121 * SECOND))


def test_a_fault_that_comes_again_is_graver() -> None:
    looking = watcher()
    first = looking.look(entry(XID_74, MINUTE))
    assert (first["action"], first.get("repeated")) == ("reset", None)
    # links of one event, over minutes
    assert looking.look(entry(XID_74, 10 * MINUTE))["action"] == "reset"
    # another GPU counts by itself
    assert looking.look(entry(XID_74.replace(":53:", ":54:"), 50 * MINUTE))["action"] == "reset"
    again = looking.look(entry(XID_74, 50 * MINUTE + 1))
    assert (again["action"], again["repeated"], again["result"]) == ("replace", 2, "critical")


def test_what_lies_a_day_back_does_not_count() -> None:
    looking = watcher()
    looking.look(entry(XID_74, MINUTE))
    assert looking.look(entry(XID_74, 25 * HOUR))["action"] == "reset"


def test_a_boot_between_is_a_repeat_even_within_minutes() -> None:
    looking = watcher()
    looking.look(entry(XID_79, HOUR))
    after = watcher(json.loads(json.dumps(looking.state())))
    found = after.look(entry(XID_79, MINUTE, boot="f" * 32, skew=HOUR))
    assert (found["action"], found["repeated"]) == ("replace", 2)


@pytest.mark.parametrize("skew", [-400 * 24 * HOUR, -2 * HOUR, 2 * HOUR])
def test_a_clock_that_was_set(skew: int) -> None:
    """Time within a boot is the kernel's own; between boots what seems to lie ahead counts as of now."""
    looking = watcher()
    looking.look(entry(XID_74, MINUTE))
    assert looking.look(entry(XID_74, 10 * MINUTE, skew=skew))["action"] == "reset"
    assert looking.look(entry(XID_74, 50 * MINUTE, skew=skew))["action"] == "replace"


def test_no_line_is_counted_twice() -> None:
    looking = watcher()
    lines = [entry(XID_13, SECOND), entry(XID_79, 2 * SECOND)]
    assert [bool(looking.look(line)) for line in lines] == [True, True]
    after = watcher(looking.state())
    # journalctl did not find the cursor, and begins anew
    assert [after.look(line) for line in lines] == [None, None]
    assert after.look(entry(XID_79, 3 * SECOND)) is not None


def test_what_is_kept_is_bounded() -> None:
    looking = watcher()
    for index in range(3000):
        looking.look(entry(XID_74.replace("0000:53:00", f"{index % 65536:04x}:53:00"), index * SECOND))
    assert len(looking.times) <= watch.KEPT
    assert len(looking.quiet) <= watch.KEPT + 1


# --- garbage ---

FEW = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(
    st.lists(st.one_of(st.text(), st.binary().map(list), st.none(), st.integers(), st.lists(st.integers())))
)
def test_any_message(messages: list[Any]) -> None:
    looking = watcher()
    for at, message in enumerate(messages):
        looking.look(entry(message, at))
        json.dumps(looking.state())
    for found in watch.findings([one for one in messages if isinstance(one, str)], TABLE, "hopper"):
        assert found["result"] in ("ok", "warn", "critical")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["__CURSOR", "__MONOTONIC_TIMESTAMP", "__REALTIME_TIMESTAMP", "_BOOT_ID", "_TRANSPORT", "MESSAGE"]


@FEW
@given(st.one_of(JSON, st.dictionaries(st.sampled_from(FIELDS), JSON)))
def test_any_entry(value: Any) -> None:
    looking = watcher()
    looking.look(value)
    assert looking.look(entry(XID_79, 10**18)) is not None
    json.dumps(looking.state())


@FEW
@given(
    st.one_of(
        JSON, st.fixed_dictionaries({}, optional={"cursor": JSON, "boot": JSON, "at": JSON, "times": JSON})
    )
)
def test_any_state(state: Any) -> None:
    looking = watcher(state)
    assert looking.look(entry(XID_79, 10**18)) is not None
    json.dumps(looking.state())


@FEW
@given(
    st.integers(0, 99999),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=15),
    st.text(max_size=80),
)
def test_a_code_that_nobody_knows_drains_nothing(code: int, name: str, words: str) -> None:
    if str(code) in {c for row in TABLE["faults"] for c in row["codes"]}:
        return
    found = one(f"NVRM: Xid (PCI:0000:53:00): {code}, pid=1, name={name}, {words}")
    assert found is not None
    assert (found["result"], found["action"], found["fault"]) == ("warn", "none", "xid-unknown")


def test_a_damaged_table_knows_nothing(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"faults": 7}', '{"generations": {}, "faults": [{}]}', "\0"):
        path = tmp_path / "faults.json"
        path.write_text(text, encoding="utf-8")
        table = faults.load(str(path))
        assert watch.findings([XID_79], table, "hopper") == []

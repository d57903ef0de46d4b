"""The table of known failures: every row knows its text and its source, and no harmless line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from project import ROOT
from rows import for_each

from ultracluster.account.doctor.examination import Examination, Quote
from ultracluster.account.doctor.known_failures import (
    KnownFailure,
    Stage,
    diagnose,
    known_failures,
    readable,
)

HERE = Path(__file__).parent
ROWS = known_failures()
TEXTS = [row for row in ROWS if not row.text_of]
CASES: list[dict[str, str]] = json.loads((HERE / "pasted_texts.json").read_text("utf-8"))["cases"]
HARMLESS: dict[str, list[str]] = json.loads((HERE / "harmless_lines.json").read_text("utf-8"))
SOURCE = (
    r"[\w.-]+/[\w.-]+((#| PR #)\d+|, .+)|(AWS documentation|NVIDIA|Lustre), .+|this package, docs/[a-z-]+\.md"
)
BEFORE = (
    "",
    "Nov 21 08:00:00 ip-10-1-0-17 slurmd[4711]: ",
    "2026-11-21T08:00:00.000Z INFO  ",
    '{"log":"',
    "0: ",
)


def causes(*lines: str) -> list[str]:
    """Ids of everything that `doctor` says of the lines."""
    quotes = [Quote(f"log:{number}", line) for number, line in enumerate(lines)]
    return [one.failure.id for one in Examination(quotes=quotes).diagnoses]


@for_each("row", ROWS, ids=lambda row: row.id)
def test_a_row_is_whole(row: KnownFailure) -> None:
    assert row.when in get_args(Stage) and row.weight in (1, 2, 3)
    assert row.cause and row.differs and row.do and row.run and row.sources
    assert [source for source in row.sources if not re.fullmatch(SOURCE, source)] == []
    assert (ROOT / "docs" / row.page.partition("#")[0]).is_file()
    assert row.words and all(word == word.lower() for word in row.words)
    assert row.certain or row.text_of, "what is only possible never stands alone"


@for_each("row", TEXTS, ids=lambda row: row.id)
def test_a_text_has_its_row_and_no_other(row: KnownFailure) -> None:
    own = {row.id, *(other.id for other in ROWS if other.text_of == row.id)}
    for text in (row.seen, row.seen.upper(), row.seen.lower(), *(f"{before}{row.seen}" for before in BEFORE)):
        ids = {one.failure.id for one in diagnose([text])}
        assert ids == own, text


def test_ids_are_unique_and_the_table_is_wide() -> None:
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids) >= 140
    assert len({row.layer for row in ROWS}) >= 15


@for_each("case", CASES, ids=lambda case: case["case"])
@for_each("change", [str, str.upper])
def test_a_pasted_text_has_its_cause_first(case: dict[str, str], change: type[str]) -> None:
    assert causes(*change(case["text"]).splitlines())[0] == case["first"]
    assert causes(change(case["text"]))[0] == case["first"], "as one text"


@pytest.mark.parametrize("source", HARMLESS)
def test_harmless_lines_have_no_cause(source: str) -> None:
    for line in HARMLESS[source]:
        assert causes(line) == causes(line.upper()) == causes(f"{BEFORE[1]}{line}") == [], line


def test_harmless_lines_together_have_no_cause() -> None:
    lines = [line for some in HARMLESS.values() for line in some]
    assert len(lines) >= 200
    assert causes("\n".join(lines)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Successfully completed", "RequestLimitExceeded", "PrivateIpAddress: 10.0.0.5", "Running",
        "Selected Provider is efa", "all checks passed", "", "exit status 100", "mount failed",
        "No such device", "Connection refused", "Input/output error", "Invalid argument", "Permission denied",
    ],
)  # fmt: skip
def test_what_says_nothing_gets_no_cause(text: str) -> None:
    assert causes(text) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("insufficient-capacity", "We currently do not have sufficient p5.48xlarge capacity in the zone"),
        ("quota-cluster-usage", "The account-level service limit 'ml.p5.48xlarge for cluster usage' is 0"),
    ],
)
def test_rows_know_texts_with_a_type(name: str, text: str) -> None:
    assert name in [one.failure.id for one in diagnose([text])]


LUSTRE = "mount.lustre: mount fs-1.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh at /fsx failed: {}"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("No such device", "lustre-no-module"),
        ("Kein passendes Gerät gefunden", "lustre-no-module"),
        ("Aucun périphérique de ce type", "lustre-no-module"),
        ("Invalid argument", "lustre-mount-name"),
        ("Das Argument ist ungültig", "lustre-mount-name"),
        ("Argumento inválido", "lustre-mount-name"),
        ("無効な引数です", "lustre-mount-name"),
        ("File exists", "lustre-mount-twice"),
        ("Input/output error", "fsx-988"),
        ("Connection timed out", "fsx-988"),
    ],
)
def test_the_error_number_decides_in_any_language(words: str, name: str) -> None:
    assert causes(LUSTRE.format(words))[0] == name


def test_another_subject_with_the_same_error_number_is_another_failure() -> None:
    assert "lustre-no-module" not in causes("mount: /scratch: mount(2) system call failed: No such device.")
    assert "fsx-988" not in causes("mount.nfs4: Connection timed out for 10.0.0.5:/export on /home")


def test_two_causes_of_one_text_stand_together_and_say_what_decides() -> None:
    several = {row.text_of for row in ROWS if row.text_of}
    assert several
    for name in several:
        text = next(row for row in ROWS if row.id == name)
        failures = [one.failure for one in diagnose([text.seen])]
        assert len(failures) > 1 and failures[0].certain
        assert len({failure.cause for failure in failures}) == len(failures)
        assert all(failure.differs for failure in failures), "what decides between them"


def test_a_cut_or_long_line_is_still_read() -> None:
    cut = CASES[3]["text"][-200:]
    assert causes(cut)[0] == CASES[3]["first"]
    filler = "x" * 500_000  # test_log_files.py has lines of ten megabytes
    assert causes(f"{filler} {LUSTRE.format('File exists')} {filler}")[0] == "lustre-mount-twice"
    pieces = list(readable("a" * 10_000))
    assert max(map(len, pieces)) <= 4000 and sum(map(len, pieces)) >= 10_000


def test_what_names_a_cause_stands_before_what_is_said_of_anything() -> None:
    generic = next(row for row in TEXTS if row.weight == 1)
    told = next(row for row in TEXTS if row.weight == 3)
    assert causes(generic.seen, told.seen)[0] == told.id


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "FAILED proof: no GPUs answer: nvidia-smi hung; p5.48xlarge has 8 (gpus=0/8 efa=32/32)",
            "proof-none",
        ),
        (
            "DEGRADED proof: proof: jobs may miss what they need of it (7 of 8 GPUs answer (gpus=7/8))",
            "proof-less",
        ),
        (
            "DEGRADED enroot, proof: enroot: no srun (x); proof: it (y); keeps older nccl 2.27 (z)",
            "proof-less",
        ),
        (
            "2026-11-27T10:00:00Z WARN  DEGRADED nvidia-fs, dcgm-exporter: nvidia-fs: no GDS (x)",
            "node-degraded",
        ),
        (
            "FAILED nvidia_driver: the driver is 565.57.01, p6-b200 needs 570: it comes with the pcs image",
            "driver-too-old",
        ),
    ],
)
def test_the_last_line_of_a_node_is_known(line: str, name: str) -> None:
    """With its cause, and the command that comes next."""
    (first, *others) = [one.failure for one in diagnose([line])]
    assert first.id == name and "`ultracluster " in first.do
    assert "health-drained" not in [other.id for other in others]


def test_the_last_line_of_a_ready_node_and_of_a_step_are_no_failures() -> None:
    good = [
        "READY after 9 s, keeps older nccl 2.27.5 (the release has 2.30.7): efa proof",
        "2026-11-27T10:00:00Z WARN  enroot: degraded in 3.2 s: not here",
        "proof: already in 0.120 s: mounts=/fsx:lustre gpus=8/8",
    ]
    assert diagnose(good) == []

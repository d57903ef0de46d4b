"""Logs of nccl-tests as they come: mixed lines, tags, formats and sizes."""

from __future__ import annotations

import time

import pytest
from judged_logs import GOOD, beside, change, interleaved, said
from nccl_logs import P5EN

from ultracluster.acceptance.log_reader import parse


def test_lines_of_several_processes_on_one_line_are_told_apart() -> None:
    report = said(interleaved())

    assert report.verdict == "pass", report.as_text()
    assert [row.size for row in report.curves[0].rows] == list(P5EN)


def test_a_proof_that_is_torn_is_not_judged() -> None:
    whole = f"ip-10-1-0-21:4000:4000 [0] NCCL INFO NET/OFI {GOOD.provider}"
    torn = whole[:70] + "ip-10-1-0-22:4001:4001 [1] NCCL INFO Connected all trees"

    report = said(GOOD.text().replace(whole, torn))

    assert report.verdict == "not judged", report.as_text()
    assert "NCCL_DEBUG_FILE" in report.reason


@pytest.mark.parametrize(
    "tag", ["[1,3]<stdout>:", "[1,3]<stdout>: ", "17: ", "[pod/nccl-acceptance-launcher-x/launcher] "]
)
def test_tags_of_launchers_are_passed_over(tag: str) -> None:
    text = GOOD.text() + beside(GOOD.text())
    text = "".join(tag + line + "\n" for line in text.splitlines())

    assert said(text, bare=True).verdict == "pass"


@pytest.mark.parametrize("release", ["2.13.9", "2.16.0", "2.17.1", "2.19.6"])
def test_formats_of_nccl_tests(release: str) -> None:
    report = said(change(release=release))

    assert report.verdict == "pass", report.as_text()
    assert report.curves[0].average == pytest.approx(320.4825, rel=1e-4)


def test_times_of_each_iteration_and_time_stamps() -> None:
    lines = GOOD.text().splitlines()
    for number, line in enumerate(lines):
        if line.split()[2:3] == ["float"]:
            words = line.split()
            more = ["1.0", "2.0", "1.9", "0.4"]
            lines[number] = " ".join([*words[:9], *more, *words[9:], *more, "2026-11-20", "10:11:12"])
    text = "\n".join(lines).replace(
        "# Using devices",
        "# Per-Iteration Report: CUDA event timing; i_* uses max over process rows \n# Using devices",
    )

    assert said(text).verdict == "pass"
    assert said(GOOD.text().replace("       0\n", "       0  2026-11-20 10:11:12\n")).verdict == "pass"


def seconds(text: str) -> float:
    start = time.process_time()
    parse(text)
    return time.process_time() - start


NOISE = "".join(
    f"ip-10-1-0-2{1 + n % 4}:{4000 + n % 8}:{5000 + n % 97} [{n % 8}] NCCL INFO Channel {n % 32:02d}/0 : "
    f"{n % 31}[1] -> {n % 29}[2] via P2P/CUMEM/read\n"
    for n in range(10_000)
)
LONG = {
    "lines of NCCL": NOISE,
    "one word": "a" * 500_000,
    "almost prefixes": "a:1:" * 100_000,
    "prefixes without end": ("x" * 200 + ":1:1 [0] NCCL ") * 1_000,
    "rows without end": "8 8 float sum -1 " * 10_000,
    "numbers": "8 8 float sum -1\n" + "1 " * 100_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_logs_are_read_in_linear_time(kind: str) -> None:
    seconds(LONG[kind])  # imports and caches

    # eight times the text; a quadratic reader would take 64 times as long
    assert seconds(LONG[kind] * 8) < 25 * max(seconds(LONG[kind]), 0.01)


def test_a_huge_log_is_judged_like_a_small_one() -> None:
    assert said(GOOD.text().replace("#       size", NOISE * 5 + "#       size")).verdict == "pass"

"""Whatever the text: no reader raises, and the same words about it come from Python and from the node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cluster_schema import node_scripts
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_logs import FAULTS, GOOD, P4D, change, interleaved
from nccl_logs import Log

from ultracluster.acceptance.judge import judge
from ultracluster.acceptance.log_reader import parse
from ultracluster.cli.json_rows import plain

PIECES = st.sampled_from(
    [
        "ip-10-1-0-21:4000:4000 [0] NCCL INFO ", "ip-10-1-0-22:4001:4001 [1] misc/x.cc:12 NCCL WARN ",
        "NET/OFI Selected provider is efa (found 16 nics)", "NET/OFI Selected provider is ", "Using network ",
        "via NET/Libfabric/1", "/GDRDMA", "# nThread 1 nGpus 1 ", "NCCL ",
        "#  Rank  0 Group  0 Pid 4000 on ip-10-1-0-21 device  0 [0000:53:00] X",
        "#  Rank  1 Pid 4001 on b device  0 [0x53] X", "   8   2   float   sum  -1",
        "  12.3  1.00  1.94  0", " N/A", " nan", " 1e999",
        "# Out of bounds values : 0 OK", "# Out of bounds values : 3 FAILED", "# Avg bus bandwidth    : ",
        "# Collective test starting: all_reduce_perf",
        "# ultracluster-acceptance run=pair exit=1", "# ultracluster-acceptance exit=",
        "# ultracluster-host ",
        '{"host": "a", "verdict": 3}',
        "[1,2]<stdout>:", "0: ", "\n", "\r", "\x00", "\u2028", "٣", "99999999999999999999", " ",
    ]
)  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=60))
def test_no_text_raises(pieces: list[str]) -> None:
    for kind, nodes in (("p5en.48xlarge", 4), ("p9.48xlarge", None)):
        report = judge(parse("".join(pieces)), instance_type=kind, nodes=nodes)

        assert report.verdict != "pass"
        assert json.loads(json.dumps(plain(report), allow_nan=False))["verdict"] == report.verdict
        assert report.as_text()


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 40_000), st.integers(0, 200), st.text(max_size=20))
def test_damage_to_a_good_log_never_raises(start: int, length: int, instead: str) -> None:
    text = GOOD.text()

    assert judge(
        parse(text[:start] + instead + text[start + length :]), instance_type="p5en.48xlarge"
    ).as_text()


LOGS: dict[str, tuple[Log | str, str]] = {
    **{
        name: (log, "p5en.48xlarge")
        for name, (log, check, _) in FAULTS.items()
        if check not in ("results", "bandwidth")
    },
    "good": (GOOD, "p5en.48xlarge"),
    "good, old plugin": (P4D, "p4d.24xlarge"),
    "SENDRECV on p5": (change(protocol="SENDRECV"), "p5.48xlarge"),
    "no GPUDirect by design": (
        change(nodes=2, gpus=1, protocol="SENDRECV", channel="NET/Libfabric/0"),
        "p5.4xlarge",
    ),
    "fewer nics": (
        change(provider="Selected provider is efa, fabric is efa (found 12 nics)"),
        "p5en.48xlarge",
    ),
    "cut": (change(finished=False), "p5en.48xlarge"),
    "no lines of NCCL": (change(debug=False), "p5en.48xlarge"),
    "mixed lines": (interleaved(), "p5en.48xlarge"),
    "no tuner": (GOOD.text().replace("TUNER/Plugin: Using", "TUNER/Plugin: Lost"), "p5en.48xlarge"),
    "unknown type": (GOOD, "p9.48xlarge"),
}
NOT_OF_NCCL = {
    "nodes",
    "ranks",
    "results",
    "errors",
    "bandwidth",
    "plausible",
    "hosts",
    "single-node",
    "pairs",
}


@pytest.mark.parametrize("case", LOGS)
def test_the_node_says_the_same(case: str, tmp_path: Path) -> None:
    log, kind = LOGS[case]
    text = log if isinstance(log, str) else log.text()
    file = tmp_path / "nccl.log"
    file.write_text(text)
    report = judge(parse(text), instance_type=kind)
    here = {
        (one.id, one.outcome)
        for one in report.checks
        if one.id not in NOT_OF_NCCL and one.outcome not in ("pass", "info")
    }

    home = node_scripts(tmp_path, kind)
    done = subprocess.run(
        [home / "verify" / "fabric.sh", "--json", "--type", kind, "nccl", file],
        capture_output=True,
        text=True,
        check=False,
    )

    document = json.loads(done.stdout)
    assert {(one["id"], one["outcome"]) for one in document["checks"]} - {
        (one["id"], "pass") for one in document["checks"]
    } == here
    assert done.returncode == (0 if document["verdict"] == "pass" else 1)

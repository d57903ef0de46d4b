"""Verdicts on logs that show one fault each."""

from __future__ import annotations

import pytest
from judged_logs import FAULTS, GOOD, P4D, change, host_report, outcomes, pair, ring, said
from nccl_logs import GIB, P5EN

from ultracluster.catalog import instance_types


def test_a_good_run_on_four_nodes_passes() -> None:
    report = said(GOOD, nodes=4)

    assert report.verdict == "pass", report.as_text()
    assert report.ranks == 32
    assert report.nics == (16,)
    assert report.versions["NCCL"] == "2.27.7+cuda12.8"
    assert report.versions["aws-ofi-nccl"] == "1.22.0"
    assert report.versions["nccl-tests"] == "2.19.6"
    assert report.as_text().splitlines()[-1] == (
        "PASS: 364.87 GB/s at 4 GiB, gate 310 (364.87 published: "
        "stas00/ml-engineering, network benchmarks (NCCL 2.27.7, ring), 2026-08)"
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fails_and_is_named(fault: str) -> None:
    log, check, message = FAULTS[fault]
    text = (
        log.text().replace("platform: AWS", "platform: Default") if fault == "other platform" else log.text()
    )

    report = said(text)

    assert report.verdict == "fail", report.as_text()
    assert any(
        one.id == check and one.outcome == "fail" and message in one.message for one in report.checks
    ), report.as_text()
    assert report.as_text().splitlines()[-1].startswith("FAIL: ")


def test_one_bad_process_is_enough_and_is_named() -> None:
    text = GOOD.text().replace(
        "ip-10-1-0-23:4005:4005 [5] NCCL INFO Using network Libfabric",
        "ip-10-1-0-23:4005:4005 [5] NCCL INFO Using network Socket",
    )

    report = said(text)

    assert report.verdict == "fail"
    assert "ip-10-1-0-23:4005" in report.as_text()


def test_sendrecv_is_right_on_p4d_with_an_old_plugin() -> None:
    report = said(P4D, kind="p4d.24xlarge", nodes=2)

    assert outcomes(report, "bandwidth") == ["pass"]
    assert report.reason == "2 nodes are too few to decide which is slow"
    assert outcomes(report, "protocol") == ["pass"]
    assert report.nics == (4,)


def test_p4d_with_the_ring_forced_is_not_judged() -> None:
    report = said(change(P4D, mark="run=fabric algo=ring"), kind="p4d.24xlarge")

    assert report.verdict == "not judged"


@pytest.mark.parametrize(
    "form",
    ["NET/Libfabric/3(5)/GDRDMA", "NET/Libfabric/12/GDRDMA(PCI)/Shared", "NET/Libfabric/3/GDRDMA/flush=none"],
)
def test_every_form_of_gpu_direct_is_known(form: str) -> None:
    assert said(change(channel=form)).verdict == "pass"


def nics(found: int, *processes: str) -> str:
    """The good log, in which some processes find another number of interfaces; all where none is named."""
    text = GOOD.text()
    return "".join(
        line.replace("found 16 nics", f"found {found} nics") if line.startswith(processes or ("",)) else line
        for line in text.splitlines(keepends=True)
    )


def test_a_missing_nic_fails_and_its_processes_are_named() -> None:
    report = said(nics(15, "ip-10-1-0-23:"))

    assert report.verdict == "fail"
    assert report.reason.startswith(
        "4 nodes: 15 and 16 EFA interfaces found, expected 16: ip-10-1-0-23:4000, ip-10-1-0-23:4001"
    )
    assert outcomes(said(nics(12)), "interfaces") == ["fail"]
    assert outcomes(said(nics(0)), "interfaces") == ["fail"]


def test_a_missing_nic_in_a_pair_fails() -> None:
    both = change(
        pair("ip-10-1-0-21", "ip-10-1-0-22"), debug=True, provider="Selected provider is efa (found 15 nics)"
    )

    assert said(GOOD, both, *ring(GOOD.names())[1:]).verdict == "fail"


def test_of_an_unknown_type_processes_are_compared_with_each_other() -> None:
    assert outcomes(said(nics(15, "ip-10-1-0-23:"), kind="p9.48xlarge"), "interfaces") == ["fail"]
    assert outcomes(said(nics(15), kind="p9.48xlarge"), "interfaces") == ["info"]


def test_more_nics_than_known_warn() -> None:
    assert outcomes(said(GOOD, efa_interfaces=8), "interfaces") == ["warn"]
    assert said(GOOD, efa_interfaces=8).verdict == "pass"
    assert outcomes(said(GOOD, efa_interfaces=32), "interfaces") == ["fail"]


def test_of_a_type_with_several_layouts_each_is_right() -> None:
    right = instance_types()["p6e-gb200.36xlarge"].recommended_efa_interfaces
    assert len(right) > 1
    for found in range(right[-1] + 2):
        log = change(gpus=4, provider=f"Selected provider is efa, fabric is efa (found {found} nics)")
        expected = "pass" if found in right else "warn" if found > right[-1] else "fail"
        assert outcomes(said(log, kind="p6e-gb200.36xlarge"), "interfaces") == [expected], found


def test_a_log_that_is_cut_is_not_judged() -> None:
    report = said(change(finished=False))

    assert report.verdict == "not judged"
    assert "the log ends before the end of the results" in report.reason


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_no_part_of_a_good_log_fails_or_passes(share: float) -> None:
    text = GOOD.text()

    assert said(text[: int(len(text) * share)]).verdict == "not judged"


def test_no_lines_of_nccl_are_not_judged() -> None:
    report = said(change(debug=False))

    assert report.verdict == "not judged"
    assert "NCCL_DEBUG=INFO" in report.reason


def test_a_silent_process_is_not_judged() -> None:
    lines = [line for line in GOOD.text().splitlines() if not line.startswith("ip-10-1-0-22:4003:")]

    report = said("\n".join(lines))

    assert report.verdict == "not judged"
    assert "from 1 of 32 processes: ip-10-1-0-22:4003" in report.reason


def test_unchecked_results_are_not_judged() -> None:
    report = said(change(wrong=dict.fromkeys(P5EN, "N/A")))

    assert report.verdict == "not judged"
    assert "-c 1" in report.reason


def test_an_unknown_type_is_measured_not_judged() -> None:
    assert said(GOOD, kind="p9.48xlarge").verdict == "not judged"


def test_missing_nodes_fail() -> None:
    report = said(GOOD, nodes=8)

    assert report.verdict == "fail"
    assert "8 nodes expected, 4 took part" in report.reason


def test_fewer_ranks_than_gpus_are_not_judged() -> None:
    assert "are 32 ranks, not 28" in said(change(gpus=7)).reason


@pytest.mark.parametrize(
    "line",
    [
        "ip-10-1-0-22: Test NCCL failure common.cu:1005 'remote process exited or there was a network error'",
        "srun: error: ip-10-1-0-22: task 12: Exited with exit code 3",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "# ultracluster-acceptance exit=1",
    ],
)
def test_an_error_of_any_rank_fails(line: str) -> None:
    assert said(change(mark="run=fabric").text().replace("exit=0", "exit=0\n" + line)).verdict == "fail"


def test_the_plugin_release_is_compared() -> None:
    assert outcomes(said(GOOD, plugin_version="1.21.1"), "plugin-release") == ["warn"]
    assert outcomes(said(change(plugin="git-0a1b2c3"), plugin_version="1.22.0"), "plugin-release") == ["warn"]
    assert outcomes(said(GOOD, plugin_version="1.22.0"), "plugin-release") == []


def test_single_nodes_are_judged_beside_the_fabric() -> None:
    alone = [
        change(
            hosts=[f"ip-10-1-0-{21 + index}"],
            figures={16 * GIB: 482.05 if index else 300.0},
            mark="run=single",
        )
        for index in range(4)
    ]

    report = said(change(mark="run=fabric"), *alone)

    assert report.verdict == "fail"
    assert report.reason.startswith("single node ip-10-1-0-21: 300.00 GB/s at 16 GiB, gate 410")
    assert said(change(mark="run=fabric"), *alone[1:]).verdict == "pass"


def test_reports_of_the_hosts_count() -> None:
    good = [host_report(node) for node in GOOD.names()]

    assert outcomes(said(GOOD, *good), "hosts") == ["pass"]
    assert said(GOOD, *good).verdict == "pass"
    assert said(GOOD, *good[:3], host_report(GOOD.names()[3], "fail")).verdict == "fail"
    assert said(GOOD, *good[:3], host_report(GOOD.names()[3], "not judged")).verdict == "not judged"
    assert said(GOOD, *good[:3]).verdict == "not judged"
    assert said(GOOD, *good, host_report(GOOD.names()[0], "fail"), good[0]).verdict == "fail", (
        "the worst counts"
    )
    assert (
        said(GOOD, good[0], good[1]).reason == "no report of verify/fabric.sh from ip-10-1-0-23, ip-10-1-0-24"
    )


def test_without_reports_of_the_hosts_nothing_passes() -> None:
    report = said(GOOD, *ring(GOOD.names()), bare=True)

    assert report.verdict == "not judged"
    assert outcomes(report, "hosts") == ["not judged"]
    assert report.reason.startswith("no reports of verify/fabric.sh: EFA devices, modules, locked memory")


def test_nvlink_between_nodes_says_nothing_about_efa() -> None:
    log = change(
        gpus=4,
        channel="P2P/MNNVL",
        mark="run=fabric mnnvl=1",
        provider="Selected provider is efa, fabric is efa (found 4 nics)",
    )

    report = said(log, kind="p6e-gb200.36xlarge")

    assert report.verdict == "not judged"
    assert "says nothing about EFA" in report.as_text()
    assert outcomes(report, "interfaces") == ["pass"]

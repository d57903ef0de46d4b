"""The node that is slower than the others, by runs on single nodes and on pairs."""

from __future__ import annotations

from judged_logs import change, outcomes, said
from nccl_logs import GIB, Log


def eight(slow: str, reached: float, *, fabric: float = 364.87) -> list[Log]:
    names = [f"ip-10-1-0-{21 + index}" for index in range(8)]
    pairs = [
        change(
            hosts=[names[index], names[(index + 1) % 8]],
            figures={4 * GIB: reached if slow in (names[index], names[(index + 1) % 8]) else 365.0 + index},
            mark="run=pair algo=ring",
        )
        for index in range(8)
    ]
    return [change(hosts=names, figures={4 * GIB: fabric}, mark="run=fabric"), *pairs]


def test_the_slow_node_among_eight_is_named() -> None:
    report = said(*eight("ip-10-1-0-24", 180.0, fabric=178.0), nodes=8)

    assert report.verdict == "fail"
    assert report.pairs
    assert report.pairs.slow_nodes == ("ip-10-1-0-24",)
    assert "slow: ip-10-1-0-24; " in report.as_text()


def test_a_slow_node_alone_has_no_sourced_gate_and_warns() -> None:
    report = said(*eight("ip-10-1-0-24", 300.0))

    assert report.verdict == "pass"
    assert outcomes(report, "pairs") == ["warn"]


def test_equal_nodes_have_no_slow_one() -> None:
    report = said(*eight("none", 0))

    assert report.verdict == "pass"
    assert outcomes(report, "pairs") == ["pass"]


def test_one_slow_link_names_both_ends() -> None:
    logs = eight("none", 0)
    logs[3] = change(logs[3], figures={4 * GIB: 100.0})

    report = said(*logs)

    assert report.pairs
    assert report.pairs.slow_nodes == ("ip-10-1-0-23", "ip-10-1-0-24")

"""The judgement of a wait: who counts, who ends it, and after how long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from wait_support import Time

from ultracluster.account import wait as waiting
from ultracluster.account.aws import AccountError
from ultracluster.account.wait import GroupSeen, Look, NodeSeen, Result

Step = Look | Exception


class Scripted:
    """A source that shows prepared looks; the last one again and again."""

    def __init__(self, *steps: Step | Callable[[], Look]) -> None:
        self.steps = list(steps)
        self.looks = 0

    def look(self) -> Look:
        self.looks += 1
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Look) else step()


def node(
    number: int, state: str = "ready", why: str = "", *, defect: bool = False, gone: bool = False
) -> NodeSeen:
    lost = ("gdrcopy",) if state == "degraded" else ()
    return NodeSeen(f"i-{number:02d}", "gpu", state, why, lost, defect, gone)  # type: ignore[arg-type]


def look(*nodes: NodeSeen, wanted: int | None = None, unproven: tuple[str, ...] = (), **more: str) -> Look:
    count = len(nodes) if wanted is None else wanted
    return Look((GroupSeen("gpu", count, nodes, **more),), unproven)


def run(*steps: Step, timeout: float = 5400) -> tuple[Result, Time, list[str]]:
    time, said = Time(), list[str]()
    result = waiting.wait(
        Scripted(*steps), timeout=timeout, say=said.append, sleep=time.sleep, clock=time.clock
    )
    return result, time, said


def test_all_ready_ends_at_once_and_degraded_nodes_count() -> None:
    result, time, _ = run(look(node(1), node(2, "degraded")))
    assert result.outcome == "ready" and result.reason == "" and not time.naps


def test_a_group_at_zero_is_ready_by_definition() -> None:
    assert run(look(wanted=0))[0].outcome == "ready"


def test_nothing_is_ready_while_a_node_is_missing_or_one_too_many_starts() -> None:
    result, _, _ = run(
        look(node(1), wanted=2),
        look(node(1), node(2, "starting"), wanted=1),
        look(node(1), node(2), wanted=2),
    )
    assert result.outcome == "ready" and result.seconds == 60


def test_a_canary_ends_the_wait_with_its_reason() -> None:
    waits = look(node(1, "starting"), node(2, "starting"))
    result, time, _ = run(waits, look(node(1, "failed", "efa: no device"), node(2, "starting")))
    assert (result.outcome, result.group, result.node, result.reason) == (
        "failed",
        "gpu",
        "i-01",
        "efa: no device",
    )
    assert time.now == 30, "not after hours"


def test_one_failure_behind_a_ready_canary_is_replaced_and_forgiven() -> None:
    result, _, _ = run(
        look(node(1), node(2, "starting")),
        look(node(1), node(2, "failed", "dead GPU", gone=True), wanted=2),
        look(node(1), node(2, "failed", "dead GPU", gone=True), node(3, "starting"), wanted=2),
        look(node(1), node(2, "failed", "dead GPU", gone=True), node(3), wanted=2),
    )
    assert result.outcome == "ready"


def test_nodes_that_keep_failing_end_the_wait() -> None:
    gone = [node(number, "failed", f"cause {number}", gone=True) for number in range(2, 5)]
    steps = [look(node(1), *gone[:count], node(9, "starting"), wanted=2) for count in range(4)]
    result, _, _ = run(*steps)
    assert result.outcome == "failed" and result.node == "i-02"
    assert result.reason == "nodes keep failing, 3 so far, the first of them: cause 2"


def test_more_may_fail_in_a_large_group() -> None:
    assert [waiting.tolerated(count) for count in (1, 16, 29, 100)] == [2, 2, 2, 10]


def test_instances_that_end_unsaid_are_a_launch_loop() -> None:
    result, _, _ = run(
        look(node(1, "starting", "pending"), wanted=1), look(wanted=1),
        look(node(2, "starting", "running"), wanted=1), look(wanted=1),
    )  # fmt: skip
    assert result.outcome == "failed" and result.seconds == 90
    assert result.reason == "it ended before it was ready; when last seen: pending"


def test_a_failed_node_that_nobody_replaces_ends_the_wait() -> None:
    result, _, _ = run(look(node(1), node(2, "starting")), look(node(1), node(2, "failed", "Failure: dead")))
    assert result.outcome == "failed" and result.node == "i-02" and result.reason == "Failure: dead"


def test_while_others_still_start_a_failed_node_does_not_end_it() -> None:
    failed = node(2, "failed", "Failure: dead")
    result, _, _ = run(look(node(1), failed, node(3, "starting")), look(node(1), failed, node(3)))
    assert result.outcome == "failed" and result.seconds == 30


def test_what_should_be_there_may_come_within_a_quarter_of_an_hour() -> None:
    lacks = look(node(1, "booted", "slurmctld does not know it", defect=True))
    result, _, _ = run(*[lacks] * 20, look(node(1)))
    assert result.outcome == "ready"
    result, _, _ = run(lacks)
    assert result.outcome == "failed" and result.seconds == waiting.PATIENCE
    assert result.reason == "slurmctld does not know it, for 15 minutes"


def test_another_defect_begins_anew() -> None:
    first = look(node(1, "booted", "/fsx is not mounted", defect=True))
    second = look(node(1, "booted", "Kubernetes does not know it", defect=True))
    result, _, _ = run(*[first] * 20, second)
    assert result.outcome == "failed" and result.seconds == 20 * 30 + waiting.PATIENCE


def test_a_node_that_never_comes_meets_the_limit_with_its_reason() -> None:
    waits = look(node(1), node(2, "starting", "Pending: no capacity"))
    result, _, _ = run(waits, timeout=600)
    assert result.outcome == "late" and result.node == "i-02" and result.seconds == 600
    assert result.reason == "10 minutes have passed: gpu has 1 of 2 nodes ready; i-02: Pending: no capacity"
    result, _, _ = run(look(wanted=4, note="0 of 4, Creating"), timeout=60)
    assert result.reason == "a minute has passed: gpu has 0 of 4 nodes ready: 0 of 4, Creating"


def test_what_the_service_gives_up_ends_the_wait() -> None:
    result, _, _ = run(look(node(1), wanted=2, failed="the cluster is Failed: no capacity"))
    assert result.outcome == "failed" and result.reason == "the cluster is Failed: no capacity"


def test_a_throttled_look_is_tried_again_and_said() -> None:
    waits = look(node(1, "starting"))
    throttled = AccountError("DescribeCluster is being throttled")
    result, _, said = run(waits, throttled, throttled, look(node(1)))
    assert result.outcome == "ready" and len(said) == 2 and "throttled" in said[0]
    with pytest.raises(AccountError, match="throttled"):
        run(waits, throttled)


def test_what_cannot_be_asked_at_first_is_no_wait() -> None:
    source = Scripted(AccountError("there is no cluster"))
    with pytest.raises(AccountError, match="there is no cluster"):
        waiting.wait(source, timeout=60, sleep=Time().sleep, clock=Time().clock)
    assert source.looks == 1


def test_what_is_left_open_is_asked_three_times() -> None:
    open_ = look(node(1), unproven=("no plugin",))
    result, time, _ = run(open_)
    assert result.outcome == "ready" and result.look.unproven and len(time.naps) == 2
    result, _, _ = run(open_, look(node(1)))
    assert not result.look.unproven


def test_an_interrupt_goes_through() -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.wait(Scripted(look(node(1, "starting"))), timeout=60, sleep=stop, clock=Time().clock)

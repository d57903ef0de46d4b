"""Logs of a job: read once and in order, over restarts, from the pod that was meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes_cluster import Cluster
from queue_support import RUNNING, cluster, one_job, pending, run_jobset

from ultracluster.account.aws import AccountError
from ultracluster.jobs.queue.kubernetes import KubernetesQueue, logs
from ultracluster.jobs.queue.protocol import (
    NoSuchJobError,
)

__all__ = ["cluster"]

pytestmark = pytest.mark.slow  # starts programs or listens


def follow(queue: KubernetesQueue, **more: Any) -> list[str]:
    """All that is there now, as a reader gets it."""
    lines, cursor = [], more.pop("after", "")
    while True:
        part = queue.log("train", cursor, **more)
        lines += part.data.decode().splitlines()
        cursor = part.cursor
        if not part.more:
            return [*lines, cursor]


def test_a_log_is_read_once_and_in_order(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "PART", 700)
    queue = one_job(cluster)
    (first, second) = run_jobset(cluster, **RUNNING)
    start = datetime(2026, 11, 23, 15, 0, 0, tzinfo=UTC)
    written = [f"step {number} loss {number / 7:.3f}" for number in range(120)]
    # a hundred lines in one second, then two of one microsecond, then one longer than a piece
    cluster.log(first).write(*written[:100], at=start)
    for line in written[100:]:
        cluster.log(first).write(line, at=start + timedelta(seconds=3))
    cluster.log(first).write("x" * 5000, at=start + timedelta(seconds=4))
    cluster.log(second).write("rank 1", at=start)

    *lines, cursor = follow(queue)
    assert lines == [*written, "x" * 5000]
    cluster.log(first).write("the end", at=start + timedelta(seconds=4, microseconds=9))
    assert follow(queue, after=cursor)[:-1] == ["the end"]
    assert follow(queue, part="1")[:-1] == ["rank 1"]
    assert follow(queue, lines=2)[:-1] == ["x" * 5000, "the end"]


def test_lines_whose_times_cross_are_all_read(cluster: Cluster) -> None:
    """stdout and stderr have clocks of their own, as it were."""
    queue = one_job(cluster)
    (first, _) = run_jobset(cluster, **RUNNING)
    start = datetime(2026, 11, 23, 15, 0, 1, tzinfo=UTC)
    log, read, cursor = cluster.log(first), [], ""
    for number, offset in enumerate((0, 900, 300, 1100, 950, 1200, 1150, 1150, 2000, 1990)):
        log.write(f"line {number}", at=start + timedelta(milliseconds=offset))
        *lines, cursor = follow(queue, after=cursor)
        read += lines
    assert read == [f"line {number}" for number in range(10)]
    assert follow(queue)[:-1] == read


def test_the_end_of_a_log_goes_on_without_a_gap(cluster: Cluster) -> None:
    queue = one_job(cluster)
    (first, _) = run_jobset(cluster, **RUNNING)
    start = datetime(2026, 11, 23, 15, 0, 1, tzinfo=UTC)
    cluster.log(first).write(*[f"line {number}" for number in range(50)], at=start)
    *lines, cursor = follow(queue, lines=3)
    assert lines == ["line 47", "line 48", "line 49"]
    cluster.log(first).write("more", "\u2028 and \x0c stay in a line", at=start + timedelta(milliseconds=1))
    more, _ = queue.log("train", cursor).data.decode().split("\n", 1)
    assert more == "more"
    assert queue.log("train", cursor).data.decode().count("\n") == 2


def test_a_container_that_started_again_is_read_from_its_former_run_on(cluster: Cluster) -> None:
    queue = one_job(cluster)
    (first, _) = run_jobset(cluster, **RUNNING)
    start = datetime(2026, 11, 23, 15, tzinfo=UTC)
    cluster.log(first).write("first run", at=start)
    *lines, cursor = follow(queue)
    first["status"]["containerStatuses"] = [
        {
            "name": "trainer", "restartCount": 1, "state": {"running": {"startedAt": "2026-11-23T15:00:00Z"}},
            "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
        }
    ]  # fmt: skip
    cluster.log(first).write("its last words", at=start + timedelta(seconds=2))
    cluster.log(first, 1).write("second run", at=start + timedelta(seconds=5))
    name = first["metadata"]["name"]
    assert lines == ["first run"]
    assert follow(queue, after=cursor)[:-1] == [
        "its last words",
        f"({name}: Error, exit code 1; {name} follows)",
        "second run",
    ]
    assert follow(queue)[0] == "first run"


def test_a_pod_that_is_gone_is_followed_by_the_next(cluster: Cluster) -> None:
    queue = one_job(cluster)
    pods = run_jobset(cluster, **RUNNING)
    cluster.log(pods[0]).write("first try")
    *_, cursor = follow(queue)
    for pod in pods:
        del cluster.objects["v1", "pods", "research", pod["metadata"]["name"]]
    assert queue.log("train", cursor).note == "it has no pod yet"
    (again, _) = run_jobset(cluster, **RUNNING)
    cluster.log(again).write("second try")
    part = queue.log("train", cursor)
    assert part.data == b"second try\n" and "the pod that was read is gone" in part.note


def test_a_log_that_is_not_there_yet_says_so(cluster: Cluster) -> None:
    queue = one_job(cluster)
    assert queue.log("train").note == "it has no pod yet"
    run_jobset(cluster, **pending(state={"waiting": {"reason": "ContainerCreating"}}))
    assert queue.log("train").note == "its container has not started"
    with pytest.raises(NoSuchJobError, match="there is no rank 7: 0 to 1"):
        queue.log("train", part="7")
    with pytest.raises(NoSuchJobError, match="no pod and no node of the job is called `x`"):
        queue.log("train", part="x")
    run_jobset(cluster, **RUNNING)
    with pytest.raises(AccountError, match="begin again"):
        queue.log("train", "[1,2]")


def pod_of(name: str, made: str = "1", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "a", "uid": name, "creationTimestamp": made, "labels": labels}
    }


JOB, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"


PART, OF_JOBS = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"


ROLE, REPLICA = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"


RETRIED = [pod_of(f"a-0-{name}", name, **{JOB: "a", INDEX: "0"}) for name in "xy"]


BY_CHANCE = [pod_of("a-12345", **{JOB: "a"}), pod_of("a-bcdfg", **{JOB: "a"})]


SEVERAL = [pod_of(f"a-{i}", **{JOB: f"a-{i}", INDEX: "0", PART: "w", OF_JOBS: str(i)}) for i in range(4)]


LED = [pod_of(f"{role[0]}-0", **{ROLE: role, REPLICA: "0"}) for role in ("worker", "master")]


NUMBERED = [pod_of("a-node-0"), pod_of("a-node-1")]


@pytest.mark.parametrize(
    ("pods", "part", "found"),
    [
        # retries of one index are one place; those of a Job without indexes are each their own
        (RETRIED, "0", 2),
        (BY_CHANCE, "1", 1),
        (BY_CHANCE, "12345", 0),
        # a JobSet of several Jobs, each with an index 0
        (SEVERAL, "3", 1),
        # who leads is rank 0
        (LED, "m-0", 1),
        (NUMBERED, "1", 1),
        (NUMBERED, "\uff11", 0),
    ],
)
def test_each_pod_has_a_place(pods: list[dict[str, Any]], part: str, found: int) -> None:
    chosen, wrong = logs.of_place(pods, part)
    assert (len(chosen), bool(wrong)) == (found, not found)
    leader, _ = logs.of_place(pods, "")
    assert leader[0]["metadata"]["name"] in {"a-0-x", "a-12345", "a-0", "m-0", "a-node-0"}

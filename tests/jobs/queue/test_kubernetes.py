"""Jobs of Kubernetes before an API that refuses: submitted once and whole, listed with what they wait for,
read over restarts, and ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from kubernetes_cluster import ADMIN, CUSTOM, Cluster, StatusError, serving
from kubernetes_service import Api, serve_cluster
from kubernetes_support import environment

from ultracluster.account.aws import Account, AccountError, Identity
from ultracluster.account.kubernetes_api import KubernetesApi, NoAnswerError
from ultracluster.jobs.manifests.job_kinds import KINDS
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.queue.kubernetes import KubernetesQueue, logs
from ultracluster.jobs.queue.kubernetes import submit as submitting
from ultracluster.jobs.queue.protocol import (
    NoSuchJobError,
    NotSubmittedError,
    Program,
    QueuedJob,
    Submission,
    UnansweredError,
)
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes.teams import group_of, team_rights
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster as Environment
from ultracluster.model import resolve
from ultracluster.model.job_fit import job_pool

pytestmark = pytest.mark.slow  # starts programs or listens

TEAMS: dict[str, Any] = {"research": {"quota": 16, "limit": 24}, "product": {"quota": 8}}
IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/trainer:1"
JSON = "application/json"
TOKEN = "a1b2c3d4e5f60718"  # noqa: S105


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(submitting, "WAITS", (0.0, 0.0))
    with serving(tmp_path, Cluster(*CUSTOM)) as made:
        made.namespace("default", "research", "product", "kube-system")
        yield made


def with_teams(**changes: Any) -> Environment:
    return resolve(environment({"teams": TEAMS, **changes}))


def as_person(cluster: Cluster, name: str = "operator", *groups: str) -> Account:
    """An account whose token is that of a person in these groups; an admin without."""
    key = f"AKIA{name.upper():X<16}"
    cluster.groups[key] = groups or (ADMIN,)
    NOW.endpoint, NOW.authority = cluster.endpoint, cluster.authority
    return _account(key, name)


NOW = Api()
"""Where the API of this test is."""


@cache
def _account(key: str, name: str) -> Account:
    """One for all tests: clients take half a second."""
    made = account("us-east-2")
    made._session._session.set_credentials(key, "example")
    made._identity = Identity("111122223333", f"arn:aws:sts::111122223333:assumed-role/people/{name}")
    serve_cluster(made, NOW)
    return made


def open_queue(
    cluster: Cluster, known: Environment | None = None, *, team: str | None = "research", **more: Any
) -> tuple[KubernetesQueue, list[str]]:
    said: list[str] = []
    made = more.pop("account", None) or as_person(cluster)
    return KubernetesQueue(made, known or with_teams(), team=team, say=said.append, **more), said


def text(
    known: Environment,
    *,
    team: str | None = "research",
    name: str = "train",
    script: str = "/fsx/train.py",
    framework: Any = "pytorch",
) -> str:
    pool = job_pool(known, None)
    job = PyTorchJob(
        pool=pool, nodes=2, name=name, script=script, processes=8, image=IMAGE, team=team, priority="normal",
        framework=framework,
    )  # fmt: skip
    return "---\n".join(yaml_text(one) for one in pytorch_manifests(known, job))


def submission(known: Environment, program: Program | None = None, **more: Any) -> Submission:
    return Submission(text(known, **more), more.get("name", "train"), TOKEN, program)


def run_jobset(
    cluster: Cluster, name: str = "train", space: str = "research", **status: Any
) -> list[dict[str, Any]]:
    """What JobSet and Job do: a Job, and its pods."""
    jobset = cluster.find("jobsets", space, name)
    (part,) = jobset["spec"]["replicatedJobs"]
    labels = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": part["name"]}
    child = cluster.objects.get(("batch/v1", "jobs", space, f"{name}-node-0")) or cluster.put(
        "batch/v1",
        "jobs",
        {
            "metadata": {
                "name": f"{name}-node-0", "namespace": space, "labels": labels,
                "ownerReferences": [
                    {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": name,
                     "uid": jobset["metadata"]["uid"], "controller": True}
                ],
            },
            "spec": part["template"]["spec"],
        },
    )  # fmt: skip

    def own(index: int) -> dict[str, str]:
        return {
            **labels,
            "batch.kubernetes.io/job-name": f"{name}-node-0",
            "batch.kubernetes.io/job-completion-index": str(index),
        }

    return cluster.start_pods(child, part["template"]["spec"]["template"], 2, own, **status)


RUNNING: dict[str, Any] = {
    "phase": "Running",
    "startTime": "2026-11-23T15:00:00Z",
    "containerStatuses": [
        {"name": "trainer", "restartCount": 0, "state": {"running": {"startedAt": "2026-11-23T15:00:00Z"}}}
    ],
}


# --- submit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "kind", "space"),
    [
        (with_teams(), "jobsets", "research"),
        (with_teams(**{"orchestrator.scheduler": "volcano"}), "jobs", "research"),
        (with_teams(**{"orchestrator.scheduler": "kai"}), "jobsets", "research"),
    ],
    ids=["kueue", "volcano", "kai"],
)
def test_what_job_pytorch_writes_is_taken(
    cluster: Cluster, known: Environment, kind: str, space: str
) -> None:
    queue, said = open_queue(cluster, known)
    job = queue.submit(submission(known))

    assert (job.id, job.state, job.team, job.user) == (f"{space}/train", "waiting", "research", "operator")
    made = cluster.find(kind, space, "train")
    assert made["metadata"]["annotations"]["ultracluster/submission"] == TOKEN
    assert job.wanted_nodes == 2
    assert said == []
    assert queue.job("train").id == job.id


def test_a_program_travels_and_goes_with_its_job(cluster: Cluster) -> None:
    queue, said = open_queue(cluster)
    program = Program("train.py", b"print('step')\n", ("--lr", "1e-3"))
    queue.submit(submission(with_teams(), program))

    (config,) = cluster.names("configmaps", "research")
    held = cluster.find("configmaps", "research", config)
    jobset = cluster.find("jobsets", "research", "train")
    assert held["data"] == {"train.py": "print('step')\n"}
    assert held["metadata"]["ownerReferences"][0]["uid"] == jobset["metadata"]["uid"]
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-3:] == ["/ultracluster/program/train.py", "--lr", "1e-3"]
    assert pod["volumes"][-1]["configMap"]["name"] == config
    assert said == ["program: /ultracluster/program/train.py"]
    assert queue.cancel(["research/train"]) == {"research/train": ""}
    cluster.collect_garbage()
    assert cluster.names("configmaps", "research") == [] and cluster.names("jobsets", "research") == []


def test_bytes_that_are_no_text_travel_too(cluster: Cluster) -> None:
    queue, _ = open_queue(cluster)
    queue.submit(submission(with_teams(), Program("data.bin", b"\xff\x00")))
    (config,) = cluster.names("configmaps", "research")
    assert cluster.find("configmaps", "research", config)["binaryData"] == {"data.bin": "/wA="}


def service(name: str = "train-web", **spec: Any) -> str:
    return yaml_text(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"clusterIP": "None", "selector": {"app": "train"}, **spec},
        }
    )


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (service(clusterIp="None"), "clusterIp"),
        (service("Train"), "lower-case letters"),
        (service("kept"), "there is a Service kept in research already: give yours another name"),
    ],
    ids=["a field that is none", "a name that is none", "one that is there"],
)
def test_all_or_nothing(cluster: Cluster, first: str, said: str) -> None:
    cluster.put("v1", "services", {"metadata": {"name": "kept", "namespace": "research"}})
    queue, _ = open_queue(cluster)
    whole = f"{service('fine')}---\n{first}---\n{text(with_teams())}"
    with pytest.raises(NotSubmittedError, match=said):
        queue.submit(Submission(whole, "train", TOKEN))
    assert cluster.names("services", "research") == ["kept"]
    assert cluster.names("jobsets", "research") == []


def test_what_was_made_goes_where_the_job_is_refused_after_all(cluster: Cluster) -> None:
    def full(asked: Any) -> str:
        if asked.method == "POST" and "jobsets?" in asked.path and "dryRun" not in asked.path:
            raise StatusError(403, "Forbidden", "exceeded quota: pods")
        return ""

    cluster.lose = full
    queue, _ = open_queue(cluster)
    with pytest.raises(NotSubmittedError, match=r"JobSet train: .* exceeded quota"):
        queue.submit(submission(with_teams(), Program("train.py", b"")))
    assert cluster.names("configmaps", "research") == []


@pytest.mark.parametrize("program", [None, Program("train.py", b"pass")], ids=["alone", "with a program"])
def test_an_answer_that_is_lost_submits_once(cluster: Cluster, program: Program | None) -> None:
    lost: list[str] = []

    def once(asked: Any) -> str:
        if asked.method == "POST" and "dryRun" not in asked.path and asked.path not in lost:
            lost.append(asked.path)
            return "after"
        return ""

    cluster.lose = once
    queue, _ = open_queue(cluster)
    assert queue.submit(submission(with_teams(), program)).id == "research/train"
    sent = [one.path for one in cluster.asked if one.method == "POST" and "dryRun" not in one.query]
    assert len(sent) == len(set(sent)) == len(lost) == (2 if program else 1)
    assert cluster.names("jobsets", "research") == ["train"]


def test_a_request_that_never_came_is_not_sent_again(cluster: Cluster) -> None:
    cluster.lose = lambda asked: "before" if asked.method == "POST" and "dryRun" not in asked.path else ""
    queue, _ = open_queue(cluster)
    with pytest.raises(UnansweredError, match=r"did not answer .*, so that research/train may be there"):
        queue.submit(submission(with_teams()))
    assert cluster.names("jobsets", "research") == []


def test_no_answer_for_what_comes_before_the_job_submits_nothing(cluster: Cluster) -> None:
    cluster.lose = lambda asked: (
        "after"
        if asked.method != "DELETE" and "configmaps" in asked.path and "dryRun" not in asked.path
        else ""
    )
    queue, _ = open_queue(cluster)
    with pytest.raises(NotSubmittedError):
        queue.submit(submission(with_teams(), Program("train.py", b"")))
    assert cluster.names("jobsets", "research") == []


def test_a_name_that_is_taken_is_never_replaced(cluster: Cluster) -> None:
    queue, _ = open_queue(cluster)
    queue.submit(submission(with_teams()))
    first = cluster.find("jobsets", "research", "train")["metadata"]["uid"]
    with pytest.raises(NotSubmittedError, match="there is a JobSet train in research already: cancel it"):
        queue.submit(Submission(text(with_teams()), "train", "another0token"))
    assert cluster.find("jobsets", "research", "train")["metadata"]["uid"] == first
    queue.cancel(["train"])
    with pytest.raises(NotSubmittedError, match="still being removed"):
        queue.submit(Submission(text(with_teams()), "train", "another0token"))


def test_what_a_lost_submission_left_is_in_nobodys_way(cluster: Cluster) -> None:
    left = {"ultracluster/submission": "before", "ultracluster/job": "JobSet/train"}
    cluster.put("v1", "services", {"metadata": {"name": "web", "namespace": "research", "annotations": left}})
    queue, _ = open_queue(cluster)
    queue.submit(Submission(f"{service('web')}---\n{text(with_teams())}", "train", TOKEN))
    assert (
        cluster.find("services", "research", "web")["metadata"]["annotations"]["ultracluster/submission"]
        == TOKEN
    )


@pytest.mark.parametrize(
    ("known", "custom", "said"),
    [
        (with_teams(), False, "the cluster knows no JobSet of jobset.x-k8s.io/v1alpha2: its operator"),
        (
            resolve(environment({"teams": {"nobody": {"quota": 8}}})),
            True,
            "namespace nobody is not there: deploy",
        ),
    ],
)
def test_what_is_not_deployed_is_named(cluster: Cluster, known: Environment, custom: bool, said: str) -> None:
    if not custom:
        del cluster.kinds["jobset.x-k8s.io/v1alpha2"]
    (team, *_) = known.environment.teams
    queue, _ = open_queue(cluster, known, team=team)
    with pytest.raises(NotSubmittedError, match=said):
        queue.submit(submission(known, team=team))


# --- who may what ----------------------------------------------------------------------------------------


def test_a_member_needs_no_more_than_a_deploy_gives(cluster: Cluster) -> None:
    known = with_teams()
    cluster.rights = list(team_rights(known))
    person = as_person(cluster, "ada", group_of("research"))
    queue, _ = open_queue(cluster, known, account=person)
    queue.submit(submission(known, Program("train.py", b"pass")))
    (first, _) = run_jobset(cluster, **RUNNING)
    cluster.log(first).write("step 1")
    everybody, _ = open_queue(cluster, known, account=person, team=None)
    assert [job.id for job in everybody.jobs()] == ["research/train"]
    assert queue.log("train").data == b"step 1\n"
    assert queue.job("train").nodes == ()
    assert queue.cancel(["train"]) == {"train": ""}


def test_a_member_sees_and_ends_nothing_of_another_team(cluster: Cluster) -> None:
    known = with_teams()
    cluster.rights = list(team_rights(known))
    open_queue(cluster, known)[0].submit(submission(known))
    person = as_person(cluster, "eve", group_of("product"))
    other, _ = open_queue(cluster, known, account=person, team=None)
    assert other.jobs(everyone=True) == []
    with pytest.raises(AccountError, match="403"):
        other.job("research/train")
    assert "403" in other.cancel(["research/train"])["research/train"]
    with pytest.raises(NotSubmittedError, match="403"):
        open_queue(cluster, known, account=person)[0].submit(Submission(text(known, name="b"), "b", TOKEN))
    assert cluster.names("jobsets", "research") == ["train"]


def test_nobody_is_told_that_nothing_is_there(cluster: Cluster) -> None:
    person = as_person(cluster, "mallory", "nobody")
    with pytest.raises(AccountError, match="access entry"):
        open_queue(cluster, account=person, team=None)[0].jobs()


# --- list ------------------------------------------------------------------------------------------------


def one_job(cluster: Cluster) -> KubernetesQueue:
    queue, _ = open_queue(cluster)
    queue.submit(submission(with_teams()))
    return queue


def test_a_job_that_runs_has_nodes(cluster: Cluster) -> None:
    queue = one_job(cluster)
    for index, pod in enumerate(run_jobset(cluster, **RUNNING)):
        pod["spec"]["nodeName"] = f"ip-10-0-0-{index}.ec2.internal"
    (job,) = queue.jobs()
    assert (job.state, job.nodes) == ("running", ("ip-10-0-0-0.ec2.internal", "ip-10-0-0-1.ec2.internal"))
    assert job.started == datetime(2026, 11, 23, 15, tzinfo=UTC)
    assert queue.job("research/train") == job


def test_a_rayjob_is_its_head_its_workers_and_what_submits_its_program(cluster: Cluster) -> None:
    known = with_teams(**{"orchestrator.kuberay": True})
    cluster.rights = list(team_rights(known))
    person = as_person(cluster, "ada", group_of("research"))
    queue, said = open_queue(cluster, known, account=person)
    queue.submit(submission(known, Program("grpo.py", b"pass", ("--steps", "3")), framework="ray"))
    job = cluster.find("rayjobs", "research", "train")
    assert job["spec"]["entrypoint"] == "python /ultracluster/program/grpo.py --steps 3"
    assert said[-1] == "program: /ultracluster/program/grpo.py"
    assert [(one.state, one.wanted_nodes) for one in queue.jobs()] == [("waiting", 2)]

    ray = job["spec"]["rayClusterSpec"]
    name = "train-x7k2p"
    job["status"] = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": name}

    (state,) = RUNNING["containerStatuses"]
    states = [{**state, "name": name} for name in ("ray", "ray-job-submitter")]
    running = {**RUNNING, "containerStatuses": states}

    def labels(role: str) -> Any:
        return lambda index: {
            "ray.io/cluster": name,
            "ray.io/node-type": role,
            "name": f"{name}-{role}-9{index}",
        }

    (head,) = cluster.start_pods(job, ray["headGroupSpec"]["template"], 1, labels("head"), **running)
    (worker,) = cluster.start_pods(
        job, ray["workerGroupSpecs"][0]["template"], 1, labels("worker"), **running
    )
    submitter = job["spec"]["submitterPodTemplate"]
    (driver,) = cluster.start_pods(
        job, submitter, 1, lambda _: {"batch.kubernetes.io/job-name": "train"}, **running
    )
    other = {"ray.io/cluster": "other-x7k2p", "ray.io/node-type": "head"}
    cluster.start_pods(job, ray["headGroupSpec"]["template"], 1, lambda _: dict(other), **running)
    head["spec"]["nodeName"], worker["spec"]["nodeName"] = "ip-0", "ip-1"
    cluster.log(driver).write("step 1 reward 0.5")
    cluster.log(worker).write("(WorkerDict) loaded")

    (listed,) = queue.jobs()
    assert (listed.state, listed.nodes) == ("running", ("ip-0", "ip-1"))
    assert queue.log("train").data == b"step 1 reward 0.5\n"
    assert queue.log("train", part="2").data == b"(WorkerDict) loaded\n"
    assert queue.log("train", part="ip-1").data == b"(WorkerDict) loaded\n"

    job["status"] |= {
        "jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed",
        "message": "Job entrypoint command failed with exit code 1", "endTime": "2026-11-23T15:06:00Z",
    }  # fmt: skip
    found = queue.job("train")
    assert (found.state, found.ended) == ("failed", datetime(2026, 11, 23, 15, 6, tzinfo=UTC))
    assert found.why == "AppFailed: Job entrypoint command failed with exit code 1"
    job["status"] |= {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
    assert queue.job("train").state == "completed"
    assert queue.cancel(["train"]) == {"train": ""}


WAITING = (
    "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor train, "
    "8 more needed"
)
UNSCHEDULABLE = "0/4 nodes are available: 4 Insufficient vpc.amazonaws.com/efa."


def workload(cluster: Cluster, *conditions: dict[str, str]) -> None:
    job = cluster.find("jobsets", "research", "train")
    cluster.put(
        "kueue.x-k8s.io/v1beta2",
        "workloads",
        {
            "metadata": {
                "name": "jobset-train", "namespace": "research",
                "ownerReferences": [{"kind": "JobSet", "name": "train", "uid": job["metadata"]["uid"]}],
            },
            "status": {"conditions": list(conditions)},
        },
    )  # fmt: skip


def pending(**container: Any) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"name": "trainer", "restartCount": 0, **container}]}


def test_what_a_job_waits_for_is_said_by_who_knows(cluster: Cluster) -> None:
    queue = one_job(cluster)
    workload(cluster, {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": WAITING})
    (job,) = queue.jobs()
    assert (job.state, job.detail, job.why) == ("waiting", "Queued", WAITING)

    cluster.find("workloads", "research", "jobset-train")["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "True"},
        {"type": "Admitted", "status": "True"},
    ]
    pods = run_jobset(cluster, phase="Pending")
    pods[1]["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
    ]
    (job,) = queue.jobs()
    assert (job.state, job.detail) == ("waiting", "Pending")
    assert job.why == f"{pods[1]['metadata']['name']}: Unschedulable: {UNSCHEDULABLE}"

    pods[1]["status"] = pending(
        state={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling\x1b[2J"}}
    )
    why = queue.job("train").why
    assert "ImagePullBackOff: Back-off pulling\\x1b[2J" in why

    pods[1]["status"] = RUNNING
    (job,) = queue.jobs()
    assert (job.state, job.why) == ("running", "1 of 2 pods run")


def test_pods_that_a_quota_refuses_are_an_event(cluster: Cluster) -> None:
    queue = one_job(cluster)
    cluster.put(
        "v1",
        "events",
        {
            "metadata": {"name": "e1", "namespace": "research"},
            "type": "Warning", "reason": "FailedCreate", "lastTimestamp": "2026-11-23T15:00:00Z",
            "message": 'pods "train-node-0-0" is forbidden: exceeded quota: ultracluster',
            "involvedObject": {"kind": "Job", "name": "train-node-0"},
        },
    )  # fmt: skip
    assert queue.job("train").why.startswith("FailedCreate: pods")


def test_the_pod_that_ended_first_is_why_a_job_failed(cluster: Cluster) -> None:
    queue = one_job(cluster)
    pods = run_jobset(cluster, phase="Failed")
    for index, (pod, reason, code) in enumerate(zip(pods, ("Error", "OOMKilled"), (1, 137), strict=True)):
        at = f"2026-11-23T15:0{5 - index}:00Z"
        over = {"terminated": {"reason": reason, "exitCode": code, "finishedAt": at}}
        pod["status"]["containerStatuses"] = [{"name": "trainer", "restartCount": 0, "state": over}]
        pod["spec"]["nodeName"] = f"ip-{index}"
    cluster.find("jobsets", "research", "train")["status"] = {
        "restarts": 3,
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts",
             "message": "jobset failed due to reaching max number of restarts",
             "lastTransitionTime": "2026-11-23T15:06:00Z"}
        ],
    }  # fmt: skip
    job = queue.job("train")
    assert (job.state, job.detail, job.exit_code, job.restarts) == ("failed", "Failed", 137, 3)
    assert job.why.startswith(
        f"{pods[1]['metadata']['name']} on ip-1 ended first: OOMKilled, exit code 137 (ReachedMax"
    )
    assert job.ended == datetime(2026, 11, 23, 15, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"conditions": [{"type": "Completed", "status": "True"}]}, "completed"),
        (
            {"conditions": [{"type": "Succeeded", "status": "True"}, {"type": "Running", "status": "False"}]},
            "completed",
        ),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, "waiting"),
        ({"conditions": "none", "state": {"phase": "Aborted"}}, "cancelled"),
        ({"state": {"phase": "Completed"}}, "completed"),
        ({"conditions": [None, 5, {"type": None}]}, "waiting"),
        ("nothing", "waiting"),
    ],
)
def test_what_operators_write_is_read_as_it_comes(cluster: Cluster, status: Any, state: str) -> None:
    queue = one_job(cluster)
    cluster.find("jobsets", "research", "train")["status"] = status
    assert queue.job("train").state == state


def test_jobs_of_others_are_shown_when_asked_for(cluster: Cluster) -> None:
    one_job(cluster)
    other, _ = open_queue(cluster, account=as_person(cluster, "bob"), team=None)
    assert other.jobs() == []
    assert [(job.id, job.user) for job in other.jobs(everyone=True)] == [("research/train", "operator")]


def test_lists_are_read_to_their_end(cluster: Cluster) -> None:
    for index in range(450):
        cluster.put(
            "batch/v1", "jobs", {"metadata": {"name": f"job-{index}", "namespace": "default"}, "spec": {}}
        )
    queue, _ = open_queue(cluster, resolve(environment({})), team=None)
    assert len(queue.jobs(everyone=True)) == 450


def test_a_job_is_found_by_its_name_where_there_is_one(cluster: Cluster) -> None:
    queue = one_job(cluster)
    cluster.put("batch/v1", "jobs", {"metadata": {"name": "train", "namespace": "research"}, "spec": {}})
    with pytest.raises(
        NoSuchJobError, match=r"several jobs are called train: JobSet/research/train, Job/research/train"
    ):
        queue.job("train")
    assert queue.job("jobset/research/train").wanted_nodes == 2
    with pytest.raises(NoSuchJobError, match="no namespace of jobs here"):
        queue.job("kube-system/train")
    for wrong in ("", "a b", "../secrets", "x/../y", "research/", "Pod/research/train", "a/b/c/d", "\x1b[2J"):
        with pytest.raises(NoSuchJobError) as refused:
            queue.job(wrong)
        assert "\x1b" not in str(refused.value)
    assert not [one for one in cluster.asked if ".." in one.path or "secrets" in one.path]


# --- logs ------------------------------------------------------------------------------------------------


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


def test_an_operator_whose_webhook_takes_no_trial(cluster: Cluster) -> None:
    def webhook(asked: Any) -> str:
        if "dryRun" in asked.path:
            raise StatusError(400, "BadRequest", 'admission webhook "a.b" does not support dry run')
        return ""

    cluster.lose = webhook
    assert one_job(cluster).job("train").id == "research/train"


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


# --- cancel ----------------------------------------------------------------------------------------------


def test_cancel_ends_what_was_meant_and_nothing_else(cluster: Cluster) -> None:
    queue = one_job(cluster)
    run_jobset(cluster, **RUNNING)
    queue.submit(Submission(text(with_teams(), name="other"), "other", TOKEN))
    answers = queue.cancel(["research/train", "research/nothing"])
    assert answers["research/train"] == "" and "there is no job" in answers["research/nothing"]
    job = queue.job("train")
    assert (job.state, job.detail) == ("cancelled", "Terminating")
    cluster.collect_garbage()
    assert cluster.names("pods", "research") == [] and cluster.names("jobs", "research") == []
    assert cluster.names("jobsets", "research") == ["other"]
    (deleted,) = [one for one in cluster.asked if one.method == "DELETE"]
    assert deleted.body["propagationPolicy"] == "Foreground" and deleted.body["preconditions"]["uid"]


# --- the API itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 503, 504])
def test_trouble_of_the_api_is_no_refusal(cluster: Cluster, status: int) -> None:
    api = KubernetesApi(as_person(cluster), "train")

    def trouble(asked: Any) -> str:
        raise StatusError(status, "Timeout", "etcdserver: request timed out")

    cluster.lose = trouble
    with pytest.raises(NoAnswerError, match="answers with"):
        api.request("/api/v1/namespaces/research/configmaps", method="POST", body={})
    with pytest.raises(AccountError, match="refuses with"):
        api.request("/api/v1/namespaces/research/configmaps")


@pytest.mark.parametrize(
    ("method", "path", "body", "content", "code"),
    [
        ("POST", "research/configmaps", {"kind": "ConfigMap"}, JSON, 400),
        ("POST", "nowhere/configmaps", {"metadata": {"name": "a"}}, JSON, 404),
        ("POST", "research/configmaps", {"metadata": {"name": "a", "namespace": "b"}}, JSON, 400),
        ("POST", "research/configmaps", {"metadata": {"name": "A_"}}, JSON, 422),
        ("POST", "research/configmaps", {"metadata": {"name": "a"}, "date": {}}, JSON, 400),
        ("POST", "research/configmaps", {"metadata": {"name": "a"}}, "text/yaml", 415),
        ("GET", "research/rayjobs", None, JSON, 404),
        ("GET", "research/configmaps?continue=old", None, JSON, 410),
    ],
)  # fmt: skip
def test_the_stand_in_refuses_what_an_api_refuses(
    cluster: Cluster, method: str, path: str, body: Any, content: str, code: int
) -> None:
    api = KubernetesApi(as_person(cluster), "train")
    whole = {"apiVersion": "v1", "kind": "ConfigMap", **body} if body and "metadata" in body else body
    with pytest.raises(AccountError, match=f"refuses with {code}"):
        api.request(f"/api/v1/namespaces/{path}", method=method, body=whole, content=content)


def test_a_token_of_nobody_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    api = KubernetesApi(as_person(cluster), "train")
    monkeypatch.setattr("ultracluster.account.kubernetes_api.token", lambda *_: "k8s-aws-v1.aGVsbG8")
    with pytest.raises(AccountError, match="401"):
        api.get("/api/v1/namespaces/research/pods")


def test_every_kind_is_read_where_it_is() -> None:
    assert len({(kind.version, kind.plural) for kind in KINDS}) == len(KINDS)
    assert QueuedJob(id="a", name="a", user="", team="", state="failed").over

"""Jobs of Kubernetes before an API that refuses: submitted once and whole, seen by their team, ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes_cluster import Cluster, StatusError
from kubernetes_support import environment
from queue_support import (
    RUNNING,
    TOKEN,
    as_person,
    cluster,
    one_job,
    open_queue,
    run_jobset,
    submission,
    text,
    with_teams,
)

from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi, NoAnswerError
from ultracluster.jobs.manifests.job_kinds import KINDS
from ultracluster.jobs.queue.protocol import (
    NoSuchJobError,
    NotSubmittedError,
    Program,
    QueuedJob,
    Submission,
    UnansweredError,
)
from ultracluster.kubernetes.teams import group_of, team_rights
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster as Environment
from ultracluster.model import resolve

__all__ = ["cluster"]

pytestmark = pytest.mark.slow  # starts programs or listens

JSON = "application/json"


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


# --- find ------------------------------------------------------------------------------------------------


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


def test_an_operator_whose_webhook_takes_no_trial(cluster: Cluster) -> None:
    def webhook(asked: Any) -> str:
        if "dryRun" in asked.path:
            raise StatusError(400, "BadRequest", 'admission webhook "a.b" does not support dry run')
        return ""

    cluster.lose = webhook
    assert one_job(cluster).job("train").id == "research/train"


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


def test_what_was_held_of_nodes_is_read_from_pods(cluster: Cluster) -> None:
    queue = one_job(cluster)
    first, _ = run_jobset(cluster, **RUNNING)
    first["spec"]["nodeName"] = "n1"
    between = datetime(2026, 11, 23, tzinfo=UTC), datetime(2026, 11, 24, tzinfo=UTC)
    found = queue.records(with_teams(), *between)
    (run,) = found.runs
    assert (run.job, run.user, run.team, run.nodes) == ("research/train", "operator", "research", ("n1",))
    assert dict(found.groups) == {"n1": "train"} and run.end is None and run.accelerators == 1.0
    assert [note for note in found.notes if "keeps no accounting" in note]
    assert queue.job("train").id == run.job


def test_hours_of_namespaces_that_may_not_be_read_are_no_zero(cluster: Cluster) -> None:
    known = with_teams()
    cluster.rights = list(team_rights(known))
    one_job(cluster)
    first, _ = run_jobset(cluster, **RUNNING)
    first["spec"]["nodeName"] = "n1"
    person = as_person(cluster, "eve", group_of("product"))
    queue, _ = open_queue(cluster, known, account=person, team=None)
    found = queue.records(known, datetime(2026, 11, 23, tzinfo=UTC), datetime(2026, 11, 24, tzinfo=UTC))
    assert found.runs == ()
    (hidden,) = [note for note in found.notes if "You may not read jobs of" in note]
    assert "research" in hidden and "product" not in hidden and "`idle`" in hidden
    assert [note for note in found.notes if "Nodes may not be listed" in note]

"""Manifests of a person: what is refused before anything is asked, and what is put in."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment
from ruamel.yaml import YAML

from ultracluster.jobs.manifests.job_documents import PROGRAM, TOKEN, USER, JobDocuments, job_documents
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve

PLAIN = resolve(environment({}))
TEAMS = resolve(
    environment({"teams": {"research": {"quota": 16}, "product": {"quota": 8, "namespace": "prod-ns"}}})
)
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "a", "image": "b", "command": ["torchrun"], "args": ["--nnodes=2", "x.py", "-q"]}
                ],
            }
        }
    },
}


def changed(**changes: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(JOB))
    for path, value in changes.items():
        *steps, last = path.split("__")
        target = document
        for step in steps:
            target = target.setdefault(step, {})
        target[last] = value
    return document


def read(text: str | dict[str, Any], cluster: Any = PLAIN, **more: Any) -> JobDocuments:
    text = text if isinstance(text, str) else yaml_text(text)
    return job_documents(cluster, text, **{"team": None, "token": "0a1b2c3d", "user": "ada", **more})


COMPANION = yaml_text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {}})
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + index)}: &{chr(98 + index)} [{','.join([f'*{chr(97 + index)}'] * 9)}]\n" for index in range(8)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/bash\n#SBATCH --nodes=2\n", "it is a script, as Slurm takes it"),
        ("", "the file has no job: one of HyperPodPyTorchJob, Job"),
        (COMPANION, "the file has no job"),
        ("just words", "document 1 is no object of Kubernetes"),
        ("- a\n- b\n", "document 1 is no object of Kubernetes"),
        ("kind: Job\n", "document 1 has no apiVersion"),
        ("apiVersion: v1\nkind: [Pod]\n", "document 1 has no kind"),
        ("a: b: c", "it is not YAML"),
        ("a: 1\na: 2\n", "it is not YAML"),
        ("a: !!python/object:os.system {}\n", "it is not YAML"),
        ("%YAML 1.1\n---\na: b\n", "line 1: a YAML directive"),
        ("[" * 200 + "]" * 200, "deeper than a manifest's"),
        (BOMB, "more, or deeper, than a job needs"),
        ("a: &a [*a]\n", "more, or deeper, than a job needs"),
        ("a: 2026-11-23\n", "`a`: 2026-11-23 is a date in YAML: write it in quotes"),
        ("a: .nan\n", "nan is no number of JSON"),
        ("a: !!binary aGk=\n", "a bytes has no place"),
        ("1: a\n", "the key `1` is no text"),
        (yaml_text(changed(kind="Pod", apiVersion="v1")), "a bare Pod is counted by no queue"),
        (yaml_text(changed(kind="List", apiVersion="v1")), "write its items as documents"),
        (yaml_text(changed(kind="Jobset")), "`Jobset` is neither a job .* do you mean JobSet"),
        (yaml_text(changed(kind="Secret", apiVersion="v1")), "`Secret` is neither a job"),
        (yaml_text(changed(kind="RoleBinding", apiVersion="rbac.authorization.k8s.io/v1")), "neither a job"),
        (yaml_text(changed(apiVersion="batch/v1beta1")), "or batch/v1 here"),
        (yaml_text(changed(metadata=None)), "has no metadata"),
        (yaml_text(changed(metadata={"generateName": "a-"})), "generateName makes a new job"),
        (yaml_text(changed(metadata__name="Train")), "`Train` is no name"),
        (yaml_text(changed(metadata__name="a/../b")), "is no name"),
        (yaml_text(changed(metadata__name="a" * 64)), "is no name"),
        (yaml_text(changed(metadata__name="\x1b[2J")), r"\\x1b"),
        (yaml_text(changed(metadata__finalizers=["a"])), "metadata.`finalizers` is not yours"),
        (yaml_text(changed(metadata__ownerReferences=[])), "metadata.`ownerReferences` is not yours"),
        (yaml_text(changed(metadata__labels={"a": 1})), "write numbers and true in quotes"),
        (yaml_text(changed(metadata__labels=["a"])), "write numbers and true in quotes"),
        (yaml_text(changed(status={})), "status is Kubernetes' to write"),
        (yaml_text(changed(metadata__namespace="kube-system")), "without teams jobs are in"),
        (f"{yaml_text(JOB)}---\n{yaml_text(changed(metadata__name='b'))}", r"2 jobs \(Job train, Job b\)"),
        (yaml_text(changed(metadata__name=PROGRAM)), "is no name"),
        (yaml_text(changed(metadata__labels={"a": PROGRAM})), "--program FILE"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        read(text)
    assert "\x1b" not in str(refused.value) and len(str(refused.value)) < 600


def test_a_job_with_what_belongs_to_it() -> None:
    made = read(f"{COMPANION}---\n# nothing\n---\n{yaml_text(JOB)}")
    assert [one["kind"] for one in made.all] == ["ConfigMap", "Job"]
    assert {one["metadata"]["namespace"] for one in made.all} == {"default"}
    assert made.job["metadata"]["annotations"] == {TOKEN: "0a1b2c3d", USER: "ada"}
    assert made.companions[0]["metadata"]["annotations"]["ultracluster/job"] == "Job/train"
    assert made.job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "everyone"}
    assert made.notes == ("namespace: default", "queue: everyone (label kueue.x-k8s.io/queue-name)")


def test_labels_that_are_written_and_empty_are_none() -> None:
    made = read(changed(metadata__labels=None, metadata__annotations=None))
    assert list(made.job["metadata"]["labels"]) == ["kueue.x-k8s.io/queue-name"]


def test_aliases_are_copies() -> None:
    text = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
    - name: a
      template: &same {spec: {template: {spec: {containers: [{name: a, image: b, args: ["@program@"]}]}}}}
    - name: b
      template: *same
"""
    made = read(text, program=("train.py", b""))
    for template in made.kind.templates(made.job):
        assert len(template["spec"]["volumes"]) == len(template["spec"]["containers"][0]["volumeMounts"]) == 1


@pytest.mark.parametrize(
    ("namespace", "team", "found"),
    [
        (None, "research", "research"),
        ("research", None, "research"),
        ("prod-ns", None, "prod-ns"),
        (None, "product", "prod-ns"),
    ],
)
def test_a_team_has_its_namespace(namespace: str | None, team: str | None, found: str) -> None:
    made = read(changed(**({"metadata__namespace": namespace} if namespace else {})), TEAMS, team=team)
    assert made.namespace == made.job["metadata"]["namespace"] == found
    assert made.job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == made.team


@pytest.mark.parametrize(
    ("namespace", "team", "said"),
    [
        (None, None, r"pass --team \(research, product\)$"),
        ("default", None, "`default` is no team's namespace"),
        ("prod-ns", "research", "the jobs of team research are in `research`"),
        (7, "research", "is no text"),
        (["research"], None, "is no text"),
    ],
)
def test_another_teams_namespace_is_refused(namespace: Any, team: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(changed(**({"metadata__namespace": namespace} if namespace else {})), TEAMS, team=team)


def test_documents_of_two_namespaces_are_refused() -> None:
    other = COMPANION.replace("name: settings", "name: settings\n  namespace: prod-ns")
    with pytest.raises(ValueError, match=r"several namespaces"):
        read(f"{other}---\n{yaml_text(changed(metadata__namespace='research'))}", TEAMS)


@pytest.mark.parametrize(
    ("scheduler", "kind", "note"),
    [
        ("volcano", "batch/v1", "a Job of batch/v1 gets round the queues of Volcano"),
        ("volcano", "batch.volcano.sh/v1alpha1", r"queue: research \(spec.queue\)"),
        ("kai", "batch/v1", "names no queue of KAI"),
        ("none", "batch/v1", ""),
    ],
)
def test_what_becomes_of_queues_is_said(scheduler: str, kind: str, note: str) -> None:
    teams = {} if scheduler == "none" else {"teams": {"research": {"quota": 16}}}
    known = resolve(environment({**teams, "orchestrator.scheduler": scheduler}))
    made = read(changed(apiVersion=kind), known, team="research" if teams else None)
    assert re.search(note, made.notes[-1]) if note else len(made.notes) == 1
    assert "labels" not in made.job["metadata"]


def test_a_queue_that_is_written_stays() -> None:
    made = read(changed(metadata__labels={"kueue.x-k8s.io/queue-name": "mine"}))
    assert made.job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "mine"}


def container(made: JobDocuments) -> dict[str, Any]:
    (template,) = made.kind.templates(made.job)
    return template["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("command", "args", "arguments", "becomes"),
    [
        (["torchrun"], ["--nnodes=2", "x.py", "-q"], (), ["--nnodes=2", "@", "-q"]),
        (["torchrun"], ["--nnodes=2", "x.py", "-q"], ("-v",), ["--nnodes=2", "@", "-v"]),
        (["python"], ["-m", "@program@"], ("a",), ["-m", "@", "a"]),
        (["bash", "-c"], ["@program@", "more"], (), ["@", "more"]),
        (["bash", "-c"], ["sleep 1"], (), ["sleep 1"]),
    ],
)
def test_a_program_takes_the_place_of_the_script(
    command: list[str], args: list[str], arguments: tuple[str, ...], becomes: list[str]
) -> None:
    path = "spec__template__spec__containers"
    job = changed(**{path: [{"name": "a", "image": "b", "command": command, "args": args}]})
    made = read(job, program=("t.py", b"print(1)"), arguments=arguments)
    wanted = ["/ultracluster/program/t.py" if become == "@" else become for become in becomes]
    assert container(made)["args"] == wanted
    assert container(made)["volumeMounts"][0]["readOnly"] is True
    assert made.companions[-1]["metadata"]["name"] == "train-program-0a1b2c3d"


@pytest.mark.parametrize(
    ("job", "program", "said"),
    [
        (JOB, ("a b.py", b""), "a ConfigMap takes letters"),
        (JOB, ("..", b""), "a ConfigMap takes letters"),
        (changed(spec__template={"spec": {}}), ("a.py", b""), "have no containers"),
        (changed(spec__template={"spec": {"containers": ["a"]}}), ("a.py", b""), "is no mapping"),
        (changed(spec={}), ("a.py", b""), "has no pods in its text"),
        (changed(kind="TrainJob", apiVersion="trainer.kubeflow.org/v1alpha1"), ("a.py", b""), "has no pods"),
    ],
)
def test_a_program_that_cannot_travel(job: dict[str, Any], program: tuple[str, bytes], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(job, program=program)


def test_arguments_that_no_container_takes_are_refused() -> None:
    job = changed(spec__template__spec__containers=[{"name": "a", "image": "b"}])
    with pytest.raises(ValueError, match="no container starts one"):
        read(job, program=("a.py", b""), arguments=("-v",))
    assert "the manifest must start it" in read(job, program=("a.py", b"")).notes[-1]


def test_what_is_made_is_what_kubernetes_reads() -> None:
    made = read(JOB, program=("a.py", b"\xff"))
    for one in made.all:
        assert problems(one) == []
        assert YAML(typ="safe").load(yaml_text(one)) == one

"""Every pod that `ultracluster` writes, before the level of its namespace and judges from elsewhere."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkov_judge
import pytest
from pod_security import Level, Pod, violations
from ruamel.yaml import YAML
from scheduling_support import made

from ultracluster.acceptance.job import manifest
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes.isolation import job_namespace
from ultracluster.kubernetes.pod_security import namespace_labels, no_labels
from ultracluster.model import resolve
from ultracluster.model.job_fit import job_pool

Change = Callable[[Pod], object]

TEAMS: dict[str, dict[str, Any]] = {
    "strict": {},
    "own-user": {"uid": 2001},
    "roots": {"pod_security": "baseline"},
    "named": {"pod_security": "baseline", "uid": 2002},
}


def template(manifest: dict[str, Any]) -> Pod:
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    elif "tasks" in spec:
        spec = spec["tasks"][0]
    return spec["template"]


def job(scheduler: str, team: str | None, **changes: Any) -> tuple[Pod, Level]:
    """The pod of a job of this tool, and the level of the namespace that it names."""
    given = {} if team is None else {team: {"quota": 8, **TEAMS[team]}}
    cluster = resolve(made(scheduler, teams=given, **changes))
    wanted = PyTorchJob(
        pool=job_pool(cluster, None),
        nodes=2,
        name="train",
        script="/fsx/train.py",
        processes=8,
        image="example.com/trainer:1",
        team=team,
        priority="normal",
        within=None,
    )
    space = job_namespace(cluster, team)
    written = pytorch_manifests(cluster, wanted)[-1]
    assert written["metadata"]["namespace"] == space.name
    return template(written), space.level


SCHEDULERS = ("kueue", "kai", "volcano")
JOBS = [(scheduler, team) for scheduler in SCHEDULERS for team in (None, *TEAMS)]


def acceptance_pods() -> list[Pod]:
    text = manifest("p5en.48xlarge", 4, image="example.com/nccl-tests:1")
    (written,) = (one for one in YAML(typ="safe").load_all(text) if one["kind"] == "MPIJob")
    return [one["template"] for one in written["spec"]["mpiReplicaSpecs"].values()]


@pytest.mark.parametrize(("scheduler", "team"), JOBS)
def test_a_job_is_let_into_its_namespace(scheduler: str, team: str | None) -> None:
    pod, level = job(scheduler, team)

    assert violations(pod, level) == []
    assert pod["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("team", "uid"), [(None, None), ("strict", 1000), ("own-user", 2001), ("roots", None), ("named", 2002)]
)
def test_a_job_runs_as_its_teams_user(team: str | None, uid: int | None) -> None:
    pod, _ = job("kueue", team)
    context = pod["spec"]["securityContext"]
    (container,) = pod["spec"]["containers"]

    assert context.get("runAsUser") == context.get("runAsGroup") == uid
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert ("HOME" in variables) == (uid is not None)


def test_the_level_of_default_is_the_orchestrators() -> None:
    pod, level = job("kueue", None, orchestrator__pod_security="restricted")

    assert level == "restricted"
    assert violations(pod, level) == []


def test_the_acceptance_job_is_let_into_default() -> None:
    pods = acceptance_pods()

    assert len(pods) == 2
    assert [violations(pod, "baseline") for pod in pods] == [[], []]


def _add_capability(pod: Pod) -> None:
    pod["spec"]["containers"][0]["securityContext"].setdefault("capabilities", {})["add"] = ["IPC_LOCK"]


WRONG: dict[str, tuple[Change, str]] = {
    "capability": (_add_capability, "CKV_K8S_25"),
    "privileged": (
        lambda pod: pod["spec"]["containers"][0]["securityContext"].update(privileged=True),
        "CKV_K8S_16",
    ),
    "host network": (lambda pod: pod["spec"].update(hostNetwork=True), "CKV_K8S_19"),
    "host processes": (lambda pod: pod["spec"].update(hostPID=True), "CKV_K8S_17"),
    "host folder": (
        lambda pod: pod["spec"]["volumes"].append(
            {"name": "docker", "hostPath": {"path": "/var/run/docker.sock"}}
        ),
        "CKV_K8S_27",
    ),
}
"""What neither level allows, with the check of Checkov that finds it."""
WRONG_IF_RESTRICTED: dict[str, tuple[Change, str]] = {
    "root": (
        lambda pod: pod["spec"]["securityContext"].update(runAsUser=0, runAsNonRoot=False),
        "CKV_K8S_23",
    ),
    "all capabilities": (
        lambda pod: pod["spec"]["containers"][0]["securityContext"].pop("capabilities"),
        "CKV_K8S_37",
    ),
    "escalation": (
        lambda pod: pod["spec"]["containers"][0]["securityContext"].pop("allowPrivilegeEscalation"),
        "CKV_K8S_20",
    ),
}


def _wrong(team: str, change: Change) -> tuple[Pod, Level]:
    pod, level = job("kueue", team)
    pod = copy.deepcopy(pod)
    change(pod)
    return pod, level


@pytest.mark.parametrize("name", WRONG)
def test_what_no_level_allows_is_found(name: str) -> None:
    for team in TEAMS:
        assert violations(*_wrong(team, WRONG[name][0]))


@pytest.mark.parametrize("name", WRONG_IF_RESTRICTED)
def test_what_restricted_forbids_is_found(name: str) -> None:
    assert violations(*_wrong("strict", WRONG_IF_RESTRICTED[name][0]))


@pytest.mark.slow
def test_checkov_lets_them_in_and_finds_what_is_wrong() -> None:
    good = [job(scheduler, team) for scheduler, team in JOBS]
    good += [(pod, "baseline") for pod in acceptance_pods()]
    seeded = [(*_wrong("strict", change), check) for change, check in WRONG.values()]
    seeded += [(*_wrong("strict", change), check) for change, check in WRONG_IF_RESTRICTED.values()]
    pods = [pod for pod, _ in good] + [pod for pod, _, _ in seeded]
    found = checkov_judge.failed([_pod(pod, number) for number, pod in enumerate(pods)])

    for (_, level), checks in zip(good, found, strict=False):
        forbidden = checkov_judge.RESTRICTED if level == "restricted" else checkov_judge.BASELINE
        assert not checks & {*forbidden}
    for (_, _, check), checks in zip(seeded, found[len(good) :], strict=True):
        assert check in checks


def _pod(template: Pod, number: int) -> dict[str, Any]:
    metadata = {**template.get("metadata", {}), "name": f"pod-{number}", "namespace": "research"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.needs_input(
    "POD_SECURITY_TESTDATA",
    "*/v1.36/fail/*.yaml",
    reason="test/testdata of kubernetes/pod-security-admission is in no package archive",
)
def test_the_judge_agrees_with_kubernetes_own_test_data() -> None:
    """Compared on 2026-11-22: 148 pods, no difference."""
    folder = Path(os.environ["POD_SECURITY_TESTDATA"])
    for level in ("baseline", "restricted"):
        for kind in ("pass", "fail"):
            files = sorted((folder / level / "v1.36" / kind).glob("*.yaml"))
            assert files
            for file in files:
                pod = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
                assert bool(violations(pod, level)) == (kind == "fail"), file.name


# --- labels ----------------------------------------------------------------------------------------------


def test_a_namespace_says_its_level_and_release_in_all_modes() -> None:
    labels = namespace_labels("restricted", "1.36")

    assert {key.rpartition("/")[2]: value for key, value in labels.items()} == {
        "enforce": "restricted",
        "enforce-version": "v1.36",
        "warn": "restricted",
        "warn-version": "v1.36",
        "audit": "restricted",
        "audit-version": "v1.36",
    }
    assert set(no_labels("restricted", "1.36")) == set(labels)
    assert set(no_labels("restricted", "1.36").values()) == {"privileged", "v1.36"}

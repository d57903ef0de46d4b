"""A shell's job: the scheduler's own kind, held to its definition, with what was asked for and no more."""

from __future__ import annotations

from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment

from ultracluster.jobs.manifests.job_kinds import kind_of
from ultracluster.jobs.manifests.shell_job import seconds_of, shell_manifests
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.model import resolve
from ultracluster.model.job_fit import job_pool

TEAMS: dict[str, Any] = {"teams": {"research": {"quota": 16}}}
GOVERNED = {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"}
CLUSTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "kueue": ("eks-p5en", {}),
    "volcano": ("eks-p5en", {"orchestrator.scheduler": "volcano"}),
    "kai": ("eks-p5en", {"orchestrator.scheduler": "kai"}),
    "task-governance": ("hyperpod-eks-p5", GOVERNED),
    "neuron": ("eks-trn2", {}),
}


def made(name: str, gpus: int | None) -> dict[str, Any]:
    base, changes = CLUSTERS[name]
    cluster = resolve(environment({**changes, **TEAMS}, base=base))
    job = PyTorchJob(
        pool=job_pool(cluster, None), nodes=1, name="shell-1", script="x", processes=8, image="a/b",
        team="research", priority="normal",
    )  # fmt: skip
    objects = shell_manifests(cluster, job, gpus=gpus, seconds=7200)
    for one in objects:
        assert problems(one) == []
    return objects[-1]


def pod(job: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(job)
    assert kind
    (template,) = kind.templates(job)
    return template["spec"]


@pytest.mark.parametrize("gpus", [None, 0, 1])
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_shell_holds_what_was_asked_for(name: str, gpus: int | None) -> None:
    spec = pod(made(name, gpus))
    (container,) = spec["containers"]
    assert "sleep 7200" in container["command"][2] and "args" not in container
    asked = container["resources"]["requests"]
    device = next((key for key in asked if key.endswith(("/gpu", "/neuron"))), None)
    if gpus is None:
        assert device and int(asked[device]) >= 8 and "vpc.amazonaws.com/efa" in asked
    else:
        assert asked.keys() == {*([device] if gpus else []), "cpu", "memory"}
        assert int(asked["cpu"]) >= 1 and container["resources"]["limits"] == asked
    # who runs in it is the namespace's to say, as in every job
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_shell_that_ends_does_not_start_again(name: str) -> None:
    job = made(name, None)
    assert "Restart" not in str(job) or job["spec"].get("failurePolicy") == {"maxRestarts": 0}
    assert job["spec"].get("failurePolicy", {"maxRestarts": 0}) == {"maxRestarts": 0}


def test_more_than_a_node_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--gpus 9: a node of train has 8\. Use at most: --gpus 8"):
        made("kueue", 9)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("2:00:00", 7200),
        ("30", 1800),
        ("30:15", 1815),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("7-0", 604800),
    ],
)
def test_times_are_those_of_slurm(time: str, seconds: int) -> None:
    assert seconds_of(time) == seconds


@pytest.mark.parametrize("time", ["", "0", "8-0", "2h", "-1", "1:2:3:4", "1:1", "\uff12", "1;x", "99999"])
def test_other_times_are_refused(time: str) -> None:
    with pytest.raises(ValueError, match="--time"):
        seconds_of(time)

"""A folder in the pods of a job: Kubernetes' schemas accept them, and a shell runs what unpacks it."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from kubernetes_support import environment

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.jobs.manifests.job_documents import JobDocuments, job_documents
from ultracluster.jobs.request import Wishes, job_text
from ultracluster.jobs.workdir.folder import read_folder, write_archive
from ultracluster.jobs.workdir.in_pods import FOLDER, put_workdir
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.model.job_access import WorkdirPlace, workdir_place

pytestmark = pytest.mark.slow  # starts programs or listens

VOLUMES = {"runs": {"bucket": "example-runs", "prefix": "a/", "write": True}}
CLUSTER = resolve(environment({"orchestrator.mountpoint_s3": VOLUMES, "orchestrator.kuberay": True}))
DIGEST = "0a" * 32
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": "b", "command": ["python", "train.py"]}],
            }
        }
    },
}


def place() -> WorkdirPlace:
    found = workdir_place(CLUSTER)
    assert found
    return found


def with_folder(text: str) -> JobDocuments:
    made = job_documents(CLUSTER, text, team=None, token="0a1b2c3d", workdir=(place(), DIGEST))  # noqa: S106
    assert [note for note in made.notes if FOLDER in note]
    return made


def spec_of(**changes: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "b"}, {"name": "c", "image": "d"}], **changes}
    put_workdir([{"spec": spec}], place(), DIGEST)
    return spec


@pytest.mark.parametrize("release", kubernetes_releases())
def test_kubernetes_itself_accepts_the_pods(release: str) -> None:
    job = with_folder(yaml_text(JOB)).job
    kubernetes_validate.validate(job, release, strict=True)
    job["spec"]["template"]["spec"]["initContainers"][0]["comand"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, release, strict=True)


def test_each_container_begins_there_and_cannot_write() -> None:
    spec = spec_of(initContainers=[{"name": "own", "image": "e"}])
    for container in spec["containers"]:
        (mount,) = container["volumeMounts"]
        assert (container["workingDir"], mount["mountPath"], mount["readOnly"]) == (FOLDER, FOLDER, True)
    unpack, own = spec["initContainers"]
    assert own["name"] == "own" and unpack["image"] == "b", (
        "the image of the job itself, before its own steps"
    )
    assert unpack["command"][-2:] == [f"/ultracluster/bucket/ultracluster-workdirs/{DIGEST}.tar", DIGEST]
    assert {one["name"] for one in spec["volumes"]} >= {one["name"] for one in unpack["volumeMounts"]}
    claims = [one["persistentVolumeClaim"] for one in spec["volumes"] if "persistentVolumeClaim" in one]
    assert claims == [{"claimName": "s3-runs"}]


def test_what_the_pod_says_itself_stays() -> None:
    mine = {"name": "mine", "persistentVolumeClaim": {"claimName": "s3-runs"}}
    right = {"runAsNonRoot": True}
    first = {
        "name": "a",
        "image": "b",
        "workingDir": "/app",
        "securityContext": right,
        "imagePullPolicy": "Never",
    }
    spec = spec_of(volumes=[mine], containers=[first])
    assert first["workingDir"] == "/app" and len(spec["volumes"]) == 2
    (unpack,) = spec["initContainers"]
    assert (unpack["securityContext"], unpack["imagePullPolicy"]) == (right, "Never")
    assert unpack["volumeMounts"][0]["name"] == "mine"


@pytest.mark.parametrize("wishes", [{}, {"framework": "jax"}, {"framework": "ray"}])
def test_a_job_that_is_written_has_it_in_every_pod(wishes: dict[str, Any]) -> None:
    image = "111122223333.dkr.ecr.us-east-2.amazonaws.com/a:1"
    text = job_text(CLUSTER, Wishes(nodes=2, image=image, **wishes), workdir=True).text
    assert "train.py" in text and "/fsx/train.py" not in text
    made = with_folder(text)
    specs = [one["spec"] for one in made.kind.templates(made.job)]
    assert specs and all(one["initContainers"][0]["name"] == "ultracluster-workdir" for one in specs)
    assert {one["workingDir"] for spec in specs for one in spec["containers"]} == {FOLDER}


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        ([], "has no pods in its text"),
        ([{}], "have no containers"),
        ([{"spec": {"containers": ["a"]}}], "have no containers"),
        ([{"spec": {"containers": []}}], "has no image"),
        ([{"spec": {"containers": [{"name": "a"}]}}], "has no image"),
    ],
)
def test_pods_that_cannot_have_it_are_refused(templates: list[Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        put_workdir(templates, place(), DIGEST)


@pytest.mark.parametrize("broken", ["", "changed", "absent"])
def test_the_shell_of_an_image_unpacks_what_was_submitted_and_nothing_else(
    broken: str, tmp_path: Path
) -> None:
    code, here = tmp_path / "code", tmp_path / "workdir"
    (code / "sub").mkdir(parents=True)
    here.mkdir()
    (code / "sub" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (code / "sub" / "run.sh").chmod(0o755)
    archive = io.BytesIO()
    digest = write_archive(read_folder(code, limit_mb=1), archive)
    file = tmp_path / "archive.tar"
    if broken != "absent":
        file.write_bytes(archive.getvalue() + (b"x" if broken else b""))
    shell, option, text, *_ = spec_of()["initContainers"][0]["command"]
    words = [shell, option, text.replace(FOLDER, str(here)), "workdir", str(file), digest]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if broken:
        assert done.returncode != 0 and (broken == "absent" or "is not what was submitted" in done.stderr)
        assert not (here / "sub").exists()
    else:
        assert done.returncode == 0, done.stderr
        assert [str(one.relative_to(here)) for one in here.rglob("*")] == ["sub", "sub/run.sh"]
        assert subprocess.run([here / "sub" / "run.sh"], capture_output=True, check=True).stdout == b"ran\n"
    subprocess.run(["shellcheck", "-s", "sh", "-"], input=text, text=True, check=True)

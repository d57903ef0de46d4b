"""`job shell` on Kubernetes: a job, a terminal in its pod through kubectl, and nothing left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hyperpod_service import account
from kubernetes_cluster import CUSTOM, Cluster, serving
from kubernetes_service import Api, serve_cluster
from kubernetes_support import environment
from needs import need
from processes import until
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.account.kubernetes_api import KubernetesApi, token
from ultracluster.cli import job_shell_kubernetes as module
from ultracluster.cli.main import app
from ultracluster.cli.terminal import Wishes
from ultracluster.jobs.queue.kubernetes import KubernetesQueue, kubectl
from ultracluster.jobs.queue.protocol import UnansweredError
from ultracluster.model import resolve

TOKEN = "0f" * 24
KNOWN = resolve(environment({"teams": {"research": {"quota": 16}}}))
KUBECTL = """#!/usr/bin/env bash
echo "$*" >>"@folder@/said"
file=$2
stat -c %a "$file" >>"@folder@/mode"
cp "$file" "@folder@/kept"
[[ -z ${KUBECONFIG:-} ]] || echo theirs >>"@folder@/said"
if [[ $3 == port-forward ]]; then
  touch "@folder@/forwards"
  exec sleep 600
fi
[[ $4 != --stdin || $5 == --tty ]] || cat >"@folder@/typed"
# a person stays longer than it takes to open a port
for ((at = 0; at < 6000; at++)); do
  [[ -e @folder@/ports && ! -e @folder@/forwards ]] || break
  sleep 0.05
done
exit 5
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    (tmp_path / "bin").mkdir()
    for name, text in (("kubectl", KUBECTL.replace("@folder@", str(tmp_path))), ("aws", "#!/bin/sh\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("KUBECONFIG", "/somebody/elses")
    monkeypatch.setattr(module, "EVERY", 0.05)
    monkeypatch.setattr(module, "at_terminal", lambda: True)
    with serving(tmp_path, Cluster(*CUSTOM)) as made:
        made.namespace("default", "research")
        known = account("us-east-2")
        serve_cluster(known, as_api(made))
        monkeypatch.setattr(module, "open_account", lambda *_: known)
        yield made


def as_api(cluster: Cluster) -> Api:
    api = Api()
    api.endpoint, api.authority = cluster.endpoint, cluster.authority
    return api


def shell(**more: Any) -> int:
    if more.get("ports"):
        (Path(os.environ["PATH"].split(":")[0]).parent / "ports").touch()
    asked: dict[str, Any] = {
        "nodes": 1, "gpus": 1, "time": "1:00:00", "ports": None, "team": "research", "group": None,
        "image": "example.com/a:1", "profile": None, "dry_run": False, **more,
    }  # fmt: skip
    with pytest.raises(typer.Exit) as ended:
        module.kubernetes_shell(KNOWN, Path("eks-p5en"), **asked)
    return ended.value.exit_code


def start(cluster: Cluster) -> None:
    """What controllers do, once the job is there."""
    name = until(lambda: cluster.names("jobsets", "research"))[0]
    jobset = cluster.find("jobsets", "research", name)
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    own = {"jobset.sigs.k8s.io/jobset-name": name, "name": "shell-pod"}
    cluster.start_pods(jobset, template, 1, lambda _: dict(own), phase="Running")


def test_a_terminal_in_a_pod_and_nothing_left(cluster: Cluster, tmp_path: Path, capfd: Any) -> None:
    controller = threading.Thread(target=start, args=(cluster,))
    controller.start()
    assert shell(ports=(8888, 8889)) == 5
    controller.join()

    said = (tmp_path / "said").read_text().splitlines()
    (terminal,) = [line for line in said if " exec " in line]
    (port,) = [line for line in said if " port-forward " in line]
    assert "exec --stdin --tty shell-pod --container trainer -- /bin/sh -c" in terminal
    assert port.endswith("port-forward --address 127.0.0.1 pod/shell-pod 8888:8889")
    assert "theirs" not in said
    assert set((tmp_path / "mode").read_text().split()) == {"600"}
    assert not Path(terminal.split()[1]).exists()
    kept = json.loads((tmp_path / "kept").read_text())
    assert kept["clusters"][0]["cluster"]["server"] == cluster.endpoint
    assert "k8s-aws-v1" not in str(kept) and "example" not in str(kept["users"])
    words = "eks get-token --output json --region us-east-2 --cluster-name eks-p5en"
    assert kept["users"][0]["user"]["exec"]["args"] == words.split()
    cluster.collect_garbage()
    assert cluster.names("jobsets", "research") == []
    assert "is given back" in capfd.readouterr().err


def test_a_notebook_gets_its_token_by_no_word_and_no_manifest(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(module, "at_terminal", lambda: False)
    controller = threading.Thread(target=start, args=(cluster,))
    controller.start()
    assert shell(ports=(8888, 23456), notebook=("start it", TOKEN)) == 5
    controller.join()

    said = (tmp_path / "said").read_text()
    assert "exec --stdin shell-pod --container trainer -- /bin/sh -c start it" in said
    assert "pod/shell-pod 8888:23456" in said
    assert (tmp_path / "typed").read_text() == f"{TOKEN}\n"
    sent = "".join(str(one.body) for one in cluster.asked)
    assert TOKEN not in said and TOKEN not in sent and "notebook-" in sent
    told = capfd.readouterr()
    assert told.out == f"http://127.0.0.1:8888/lab?token={TOKEN}\n" and TOKEN not in told.err
    cluster.collect_garbage()
    assert cluster.names("jobsets", "research") == []


def test_with_quiet_a_terminal_says_nothing_that_is_no_error(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(Wishes, "quiet", True)
    controller = threading.Thread(target=start, args=(cluster,))
    controller.start()
    assert shell(ports=(8888, 8889)) == 5
    controller.join()
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(KubernetesQueue, "cancel", lambda _, ids: dict.fromkeys(ids, "it is locked"))
    monkeypatch.setattr(module, "pause", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert shell() == 130
    told = capfd.readouterr().err
    assert "is not ended (it is locked): `ultracluster job cancel" in told and told.count("\n") == 1


def test_who_gives_up_waiting_leaves_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "pause", interrupt)
    assert shell() == 130
    cluster.collect_garbage()
    assert cluster.names("jobsets", "research") == []
    assert "waiting" in capfd.readouterr().err


def test_a_job_that_fails_opens_no_shell(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def fail() -> None:
        (name,) = cluster.names("jobsets", "research")
        cluster.find("jobsets", "research", name)["status"] = {
            "conditions": [{"type": "Failed", "status": "True", "message": "no such image"}]
        }

    monkeypatch.setattr(module, "pause", fail)
    assert shell() == 1
    assert "no such image" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["shell", "notebook"])
def test_the_command_ends_so(
    kind: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = changed(environment_data("eks-p5en"), {"teams": {"research": {"quota": 16}}})
    file = tmp_path / "eks-p5en.yaml"
    file.write_text(json.dumps(data))
    more = ["--notebook"] if kind == "notebook" else []
    words = ["job", "shell", *more, str(file), "--team", "research", "--image", "example.com/a:1"]

    def fail() -> None:
        (name,) = cluster.names("jobsets", "research")
        conditions = [{"type": "Failed", "status": "True", "message": "no such image"}]
        cluster.find("jobsets", "research", name)["status"] = {"conditions": conditions}

    monkeypatch.setattr(module, "pause", fail)
    failed = CliRunner().invoke(app, words)
    assert failed.exit_code == 1 and "no such image" in failed.stderr

    def lost(*_: object) -> None:
        raise UnansweredError("no answer in time")

    monkeypatch.setattr(KubernetesQueue, "submit", lost)
    unknown = CliRunner().invoke(app, words)
    assert unknown.exit_code == 3 and "Not known whether it was submitted" in unknown.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image": None}, "a pod needs an image: --image"),
        ({"gpus": 99}, "Use at most: --gpus 8"),
        ({"time": "for ever"}, "has another form than 2:00:00"),
        ({"team": "nobody"}, "there is no team `nobody`"),
        ({"nodes": 999}, "999"),
    ],
)
def test_what_is_refused(cluster: Cluster, changes: dict[str, Any], said: str, capfd: Any) -> None:
    assert shell(**changes) == 2
    assert said in " ".join(capfd.readouterr().err.split())
    assert not [one for one in cluster.asked if one.method != "GET"]


def test_without_kubectl_nothing_is_submitted(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert shell() == 2
    assert "kubectl and aws are not on this machine" in " ".join(capfd.readouterr().err.split())
    assert cluster.asked == []


def test_kubectl_itself_takes_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one, with a stand-in for `aws eks get-token` that signs as the AWS CLI does."""
    need("kubectl")
    real = shutil.which("kubectl")
    assert real
    known = account("us-east-2")
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "spec": {},
        "status": {"token": token(known, "eks-p5en")},
    }
    (tmp_path / "aws").write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(credential)}\nE\n")
    (tmp_path / "aws").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(real).parent}:/usr/bin:/bin")
    with serving(tmp_path, Cluster()) as made:
        made.namespace("research")
        made.put("v1", "pods", {"metadata": {"name": "a", "namespace": "research"}, "spec": {}})
        serve_cluster(known, as_api(made))
        api = KubernetesApi(known, "eks-p5en")
        with kubectl.configuration(api, known, "research") as file:
            done = subprocess.run(
                [real, "--kubeconfig", str(file), "get", "--raw", "/api/v1/namespaces/research/pods"],
                env=kubectl.child_environment(), capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["items"][0]["metadata"]["name"] == "a"


def test_the_queue_tells_the_first_pod(cluster: Cluster) -> None:
    known = account("us-east-2")
    serve_cluster(known, as_api(cluster))
    cluster.put("batch/v1", "jobs", {"metadata": {"name": "a", "namespace": "research"}, "spec": {}})
    assert KubernetesQueue(known, KNOWN).first_pod("research/a") is None

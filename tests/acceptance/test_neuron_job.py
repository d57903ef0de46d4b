"""Trainium's acceptance job for Kubernetes, read back and run with fakes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from nccom_logs import table
from ruamel.yaml import YAML

from ultracluster.acceptance.job import manifest
from ultracluster.acceptance.nccom import judge_nccom, parse_nccom

IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/neuron:1"
FAKE = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >>"$FAKE/calls"
case $(basename "$0") in
  mpirun) while (($# > 0)) && [[ $1 != @(nccom-test|neuron-ls) ]]; do shift; done && exec "$@" ;;
  neuron-ls) cat "$FAKE/neuron-ls.json" ;;
  getent) echo "10.1.0.21 $2" ;;
  nccom-test)
    echo "root=${NEURON_RT_ROOT_COMM_ID-} provider=$FI_PROVIDER" >>"$FAKE/calls"
    cat "$FAKE/answer-$2"
    ;;
esac
"""


def replicas(kind: str, nodes: int, **more: Any) -> dict[str, Any]:
    """The pods' specifications by role."""
    job, *_ = YAML(typ="safe").load_all(manifest(kind, nodes, image=IMAGE, **more))
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    return {role: one["template"]["spec"] for role, one in job["spec"]["mpiReplicaSpecs"].items()}


@pytest.mark.parametrize(
    ("kind", "devices", "efa", "cores"),
    [("trn1.32xlarge", 16, 8, 32), ("trn2.48xlarge", 16, 16, 64), ("trn2u.48xlarge", 16, 16, 64)],
)
def test_the_workers_take_whole_nodes(kind: str, devices: int, efa: int, cores: int) -> None:
    made = replicas(kind, 4)

    pod = made["Worker"]
    resources = pod["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"]["aws.amazon.com/neuron"] == devices
    assert resources["limits"]["vpc.amazonaws.com/efa"] == efa
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": kind}
    assert f"-r {cores} " in made["Launcher"]["containers"][0]["args"][0]


def test_hyperpod_labels_its_nodes_otherwise() -> None:
    worker = replicas("trn2.48xlarge", 4, hyperpod=True)["Worker"]
    assert worker["nodeSelector"] == {"node.kubernetes.io/instance-type": "ml.trn2.48xlarge"}


def test_the_workers_of_an_ultraserver_are_on_one() -> None:
    def affinity(nodes: int) -> Any:
        return replicas("trn2u.48xlarge", nodes)["Worker"].get("affinity")

    (term,) = affinity(4)["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "neuron.amazonaws.com/ultraserver-server-id-4"
    assert term["labelSelector"]["matchLabels"]["training.kubeflow.org/job-name"] == "nccl-acceptance"
    assert affinity(8) is None


def test_the_workers_claim_efa_where_pods_do() -> None:
    worker = replicas("trn2.48xlarge", 4, efa_claims=True)["Worker"]

    assert "vpc.amazonaws.com/efa" not in worker["containers"][0]["resources"]["limits"]
    assert worker["containers"][0]["resources"]["claims"] == [{"name": "efa"}]
    assert worker["resourceClaims"][0]["resourceClaimTemplateName"] == "nccl-acceptance-efa"


def test_a_type_without_efa_has_no_fabric() -> None:
    with pytest.raises(ValueError, match="no EFA"):
        manifest("inf2.48xlarge", 2, image=IMAGE)


def test_the_launcher_writes_what_the_judge_reads(tmp_path: Path) -> None:
    (launcher,) = replicas("trn1.32xlarge", 2)["Launcher"]["containers"]
    (script,) = launcher["args"]
    device = '{"neuron_device": 0, "nc_count": 2, "connected_to": [1, 2]}'
    (tmp_path / "neuron-ls.json").write_text("[" + ",\n".join([device] * 16) + "]\n")
    for name in ("mpirun", "getent", "nccom-test", "neuron-ls"):
        (tmp_path / name).write_text(FAKE)
        (tmp_path / name).chmod(0o755)
    for count in (1, 2):
        (tmp_path / f"answer-{32 * count}").write_text(table(32 * count))
    hosts = tmp_path / "hostfile"
    hosts.write_text("job-worker-0.job slots=1\njob-worker-1.job slots=1\n")

    done = subprocess.run(
        [*launcher["command"], script.replace("/etc/mpi/hostfile", str(hosts))],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "FAKE": str(tmp_path),
            "ACCEPTANCE_WORD": "ultracluster-acceptance",
        },
    )

    assert done.returncode == 0, done.stderr
    report = judge_nccom(parse_nccom(done.stdout), instance_type="trn1.32xlarge", nodes=2)
    assert report.verdict == "pass", report.as_text()
    assert "2 nodes show all devices and equally many links" in report.as_text()
    calls = (tmp_path / "calls").read_text()
    assert "allr --hosts job-worker-0.job job-worker-1.job" in calls
    assert "root=10.1.0.21:45654 provider=efa" in calls

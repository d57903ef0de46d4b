"""The jobs that write the logs: the Slurm script run with fakes, the Kubernetes manifest read back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from acceptance_run import SCRIPT, Cluster, with_figures
from cluster_schema import cluster_of
from crd_fields import problems
from nccl_logs import GIB
from needs import without_setup
from project import ROOT
from ruamel.yaml import YAML

from ultracluster.acceptance.curves import gates
from ultracluster.acceptance.job import manifest
from ultracluster.acceptance.judge import judge
from ultracluster.acceptance.log_reader import read
from ultracluster.acceptance.node_tools import packed_tools
from ultracluster.catalog import instance_types

IMAGE = "public.ecr.aws/hpc-cloud/nccl-tests:latest"
SIZES = {"2G": 2 * GIB, "4G": 4 * GIB, "16G": 16 * GIB, "64G": 64 * GIB}

MPIRUN = """#!/usr/bin/env bash
[[ $* =~ --host\\ ([^ ]+) ]]
hosts=${BASH_REMATCH[1]}
if [[ $* == *fabric.sh* ]]; then
  for node in ${hosts//,/ }; do echo "{\\"host\\": \\"${node%:1}\\", \\"verdict\\": \\"pass\\"}"; done
  exit
fi
echo "$*" >>"$FAKE/calls"
cat "$FAKE/logs/${hosts//:8/}"
"""


@pytest.mark.parametrize("nodes", [4, 5, 8])
def test_a_job_measures_single_nodes_the_fabric_and_pairs(nodes: int, tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, nodes)

    done = cluster.submit()

    assert done.returncode == 3, done.stdout + done.stderr  # no `ultracluster` on that node
    assert (
        f"acceptance {tmp_path}/ultracluster-acceptance-17 --type p5en.48xlarge --nodes {nodes}"
        in done.stdout
    )
    report = judge(read(cluster.logs), instance_type="p5en.48xlarge", nodes=nodes)
    assert report.verdict == "pass", report.as_text()
    assert len(report.curves) == 1 + nodes
    assert report.pairs
    assert len(report.pairs.pairs) == nodes
    assert "verify/fabric.sh passed on" in report.as_text()
    assert report.versions["kernel"]


def test_the_slow_node_is_found(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 8, slow="ip-10-1-0-25", fabric=150.0)
    cluster.submit()

    report = judge(read(cluster.logs), instance_type="p5en.48xlarge")

    assert report.verdict == "fail"
    assert report.pairs
    assert report.pairs.slow_nodes == ("ip-10-1-0-25",)


def test_a_folder_with_logs_of_another_run_is_refused(tmp_path: Path) -> None:
    """They would be judged together."""
    cluster = with_figures(tmp_path, 4)
    cluster.submit()
    before = cluster.logs

    again = cluster.submit()

    assert again.returncode == 3
    assert "has logs of another run, which would be judged with these: set ACCEPTANCE_OUTPUT" in again.stderr
    assert cluster.logs == before


def test_a_good_node_between_two_slow_ones_meets_a_fast_one(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 5)
    nodes = cluster.nodes
    slow = {nodes[0], nodes[2]}
    for index, one in enumerate(nodes):
        for other in (*nodes[index + 1 :], *nodes[:index]):
            busbw = 250.0 if slow & {one, other} else 365.0
            cluster.answers([one, other], {4 * GIB: busbw})
    cluster.submit()

    runs = [call for call in cluster.calls if "--nodes=2 " in call]
    assert len(runs) == 5 + 1
    report = judge(read(cluster.logs), instance_type="p5en.48xlarge")
    assert report.pairs and report.pairs.slow_nodes == (nodes[0], nodes[2])
    assert not report.pairs.not_judged


def test_nccl_must_not_fall_back(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)
    cluster.submit(ACCEPTANCE_IMAGE="/fsx/nccl-tests.sqsh")

    runs = [call for call in cluster.calls if "all_reduce_perf" in call]
    assert len(runs) == 4 + 1 + 4
    for call in runs:
        assert "[Libfabric INFO INIT,NET ]" in call
        assert "--container-image=/fsx/nccl-tests.sqsh" in call
        assert "--mpi=pmix --cpu-bind=none" in call
        assert ("NCCL_ALGO=RING" in call) == ("--nodes=2 " in call)
    (fabric,) = (call for call in runs if "--nodes=4 " in call)
    assert "--ntasks=32 --ntasks-per-node=8" in fabric
    assert fabric.endswith(
        "/opt/nccl-tests/build/all_reduce_perf -b 8 -e 16G -f 2 -g 1 -c 1 -n 100 [Libfabric INFO INIT,NET ]"
    )


def test_two_nodes_force_the_ring_and_are_indicative(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 2)
    cluster.answers(cluster.nodes, {16 * GIB: 360.0})
    cluster.submit()

    assert [
        ("NCCL_ALGO=RING" in call) for call in cluster.calls if "--nodes=2 " in call and "-b 8" in call
    ] == [True]
    report = judge(read(cluster.logs), instance_type="p5en.48xlarge", nodes=2)
    assert report.verdict == "not judged"
    assert "indicative" in report.reason


def test_p4d_is_measured_on_two_nodes_as_published(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, "p4d.24xlarge")
    fields: dict[str, Any] = {
        "protocol": "SENDRECV", "provider": "Selected provider is efa, fabric is efa (found 4 nics)"
    }  # fmt: skip
    for name in cluster.nodes:
        cluster.answers([name], {2 * GIB: 230.0}, **fields)
    cluster.answers(cluster.nodes, {2 * GIB: 77.0}, **fields)
    cluster.submit()

    assert "-e 2G" in cluster.calls[-1]
    assert "NCCL_ALGO" not in cluster.calls[-1]
    report = judge(read(cluster.logs), instance_type="p4d.24xlarge", nodes=2)
    assert [check.id for check in report.checks if check.outcome == "not judged"] == ["pairs"]
    assert [check.outcome for check in report.checks if check.id == "bandwidth"] == ["pass", "info", "info"]


def test_of_a_type_that_cluster_json_lacks_the_hardware_tells(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 2)
    (cluster.home / "cluster.json").unlink()
    done = cluster.submit()
    assert done.returncode == 3
    assert "NOT JUDGED: how many GPUs p5en.48xlarge has is not known" in done.stderr

    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text(
        "#!/bin/bash\n[[ $1 != *memory* ]] && printf 'L40S\\n%.0s' 1 2 3 4 || printf '46068\\n46068\\n'\n"
    )
    smi.chmod(0o755)
    cluster.submit()
    (fabric,) = (call for call in cluster.calls if "--nodes=2 " in call and "-b 8" in call)
    assert "--ntasks=8 --ntasks-per-node=4" in fabric
    assert "-e 8G" in fabric


def test_gb200_needs_an_imex_channel_and_has_four_gpus(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4, "ml.p6e-gb200.36xlarge")
    refused = cluster.submit(IMEX="1")

    assert refused.returncode == 1
    assert refused.stdout.splitlines()[-1].startswith("FAIL: not all nodes have an IMEX channel")
    shutil.rmtree(tmp_path / "ultracluster-acceptance-17")

    for nodes in [[name] for name in cluster.nodes] + [cluster.nodes]:
        cluster.answers(nodes, {16 * GIB: 800.0}, gpus=4)
    cluster.submit()
    (fabric,) = (call for call in cluster.calls if "--nodes=4 " in call and "all_reduce_perf" in call)
    assert "--ntasks=16 --ntasks-per-node=4" in fabric
    assert fabric.endswith("[Libfabric INFO INIT,NET 1]")


def test_a_run_that_fails_fails_the_job(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)

    done = cluster.submit(SRUN_STATUS="2")

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("FAIL: ")
    assert judge(read(cluster.logs), instance_type="p5en.48xlarge").verdict == "fail"


def test_the_verdict_of_the_command_is_that_of_the_job(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)
    command = tmp_path / "bin" / "ultracluster"
    command.write_text('#!/usr/bin/env bash\necho "FAIL: $*"\nexit 1\n')
    command.chmod(0o755)

    done = cluster.submit()

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        f"FAIL: acceptance {tmp_path}/ultracluster-acceptance-17 --type p5en.48xlarge --nodes 4"
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SLURM_JOB_NODELIST": ""}, "this is a Slurm job"),
        ({"ACCEPTANCE_TYPE": ""}, "the instance type is not known"),
        ({"ACCEPTANCE_COLLECTIVE": "all_to_all"}, "alltoall_perf was not found"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_skipped(
    variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    done = with_figures(tmp_path, 4).submit(**variables)

    assert done.returncode == 3
    assert f"\nNOT JUDGED: {message}" in f"\n{done.stderr}"


def test_the_nccl_tests_that_the_nodes_built_are_found(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)
    built = tmp_path / "root/opt/ultracluster/nccl-tests-2.19.6"
    built.mkdir(parents=True)
    (tmp_path / "bin" / "all_reduce_perf").rename(built / "all_reduce_perf")

    cluster.submit(ULTRACLUSTER_ROOT=str(tmp_path / "root"))

    assert f"{built}/all_reduce_perf" in (tmp_path / "calls").read_text()


def test_another_collective_is_measured_and_not_judged(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)
    (tmp_path / "bin" / "all_reduce_perf").rename(tmp_path / "bin" / "alltoall_perf")

    cluster.submit(ACCEPTANCE_COLLECTIVE="all_to_all")

    assert "alltoall_perf -b" in (tmp_path / "calls").read_text()
    fabric = next(log for log in cluster.logs if log.name == "fabric.log")
    assert "run=fabric collective=all_to_all " in fabric.read_text()


def test_the_type_comes_from_the_firmware(tmp_path: Path) -> None:
    cluster = with_figures(tmp_path, 4)
    firmware = tmp_path / "root/sys/devices/virtual/dmi/id"
    firmware.mkdir(parents=True)
    (firmware / "product_name").write_text("p5en.48xlarge\n")

    assert "--type p5en.48xlarge --nodes 4" in cluster.submit(ACCEPTANCE_TYPE="").stdout


def assert_clean(file: Path, *tool: str) -> None:
    program = shutil.which(tool[0], path=f"{ROOT}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip(without_setup(tool[0]))
    done = subprocess.run([program, *tool[1:], file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_slurm_script_is_clean() -> None:
    assert_clean(SCRIPT, "shellcheck", "-x")
    assert_clean(SCRIPT, "shfmt", "-d", "-i", "2", "-ci")
    assert SCRIPT.stat().st_mode & 0o111 == 0o111


def read_back(text: str) -> dict[str, Any]:
    documents = {document["kind"]: document for document in YAML(typ="safe").load_all(text)}
    assert not re.search(r"\$\{(?!#|!|nodes\[|hosts|extra|more|both)", text), (
        "a place of the template was not filled"
    )
    return documents


def worker_pod(documents: dict[str, Any], role: str = "Worker") -> dict[str, Any]:
    return documents["MPIJob"]["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def launcher(text: str) -> str:
    (script,) = worker_pod(read_back(text), "Launcher")["containers"][0]["args"]
    return script


@pytest.mark.parametrize(
    ("kind", "gpus", "efa"),
    [
        ("p4d.24xlarge", 8, 4),
        ("p5.48xlarge", 8, 32),
        ("p5en.48xlarge", 8, 16),
        ("p6-b200.48xlarge", 8, 8),
        ("p6-b300.48xlarge", 8, 16),
    ],
)
def test_the_manifest_asks_for_all_gpus_and_interfaces(kind: str, gpus: int, efa: int) -> None:
    documents = read_back(manifest(kind, 4, image=IMAGE))
    job = documents["MPIJob"]
    assert set(documents) == {"MPIJob", "ConfigMap"}

    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    spec = job["spec"]
    assert spec["slotsPerWorker"] == gpus
    assert spec["runPolicy"]["backoffLimit"] == 0
    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == 4
    pod = worker_pod(documents)
    (container,) = pod["containers"]
    resources = container["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"]["nvidia.com/gpu"] == gpus
    assert resources["limits"]["vpc.amazonaws.com/efa"] == efa
    assert resources["limits"]["hugepages-2Mi"] == "5120Mi"
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": kind}
    on_hyperpod = worker_pod(read_back(manifest(f"ml.{kind}", 4, image=IMAGE, hyperpod=True)))
    assert on_hyperpod["nodeSelector"] == {"node.kubernetes.io/instance-type": f"ml.{kind}"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    launching = worker_pod(documents, "Launcher")
    assert "resources" not in launching["containers"][0]
    assert launching["restartPolicy"] == "Never"
    assert launching["nodeSelector"] == {"kubernetes.io/arch": "amd64"}


def test_the_launcher_is_clean_bash(tmp_path: Path) -> None:
    for kind in ("p5en.48xlarge", "p4d.24xlarge"):
        file = tmp_path / f"{kind}.sh"
        file.write_text("#!/usr/bin/env bash\n" + launcher(manifest(kind, 4, image=IMAGE)))
        assert_clean(file, "shellcheck")


@pytest.mark.parametrize("nodes", [4, 5])
def test_the_launcher_writes_logs_that_can_be_judged(nodes: int, tmp_path: Path) -> None:
    """The script of the pod, run here with a fake mpirun."""
    cluster = with_figures(tmp_path, nodes)
    hosts = tmp_path / "hostfile"
    hosts.write_text("".join(f"{name} slots=8\n" for name in cluster.nodes))
    fake = tmp_path / "bin" / "mpirun"
    fake.write_text(MPIRUN)
    fake.chmod(0o755)
    script = launcher(manifest("p5en.48xlarge", nodes, image=IMAGE)).replace("/etc/mpi/hostfile", str(hosts))
    (tmp_path / "tools.tar.gz").write_bytes(packed_tools(instance_types()["p5en.48xlarge"]))
    script = script.replace("/ultracluster/tools.tar.gz", str(tmp_path / "tools.tar.gz"))
    script = script.replace("folder=/tmp/ultracluster-acceptance", f"folder={tmp_path}/launcher")

    environment = {
        "PATH": str(tmp_path / "bin"),
        "FAKE": str(tmp_path),
        "ACCEPTANCE_WORD": "ultracluster-acceptance",
    }
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment, check=False
    )

    assert done.returncode == 0, done.stderr
    log = tmp_path / "acceptance.log"
    log.write_text(done.stdout)
    report = judge(read([log]), instance_type="p5en.48xlarge", nodes=nodes)
    assert report.verdict == "pass", report.as_text()
    assert report.pairs
    assert len(report.pairs.pairs) == nodes
    fabric = [call for call in cluster.calls if f"-n {nodes * 8} " in call]
    assert len(fabric) == 1
    assert "-x NCCL_NET=Libfabric -x NCCL_DEBUG=INFO -x NCCL_DEBUG_SUBSYS=INIT,NET" in fabric[0]
    assert fabric[0].endswith("all_reduce_perf -b 8 -e 16G -f 2 -g 1 -c 1 -n 100")


def test_interfaces_that_are_claimed_are_not_counted() -> None:
    text = manifest("p5en.48xlarge", 4, image=IMAGE, efa_claims=True)
    documents = read_back(text)
    template = documents["ResourceClaimTemplate"]
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    pod = worker_pod(documents)
    resources = pod["containers"][0]["resources"]

    assert problems(template) == []
    assert request["exactly"]["count"] == 16
    assert pod["resourceClaims"] == [
        {"name": "efa", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]
    assert resources["claims"] == [{"name": "efa"}]
    assert "vpc.amazonaws.com/efa" not in text
    both = manifest("p6e-gb200.36xlarge", 4, image=IMAGE, efa_interfaces=4, efa_claims=True)
    claims = [claim["name"] for claim in worker_pod(read_back(both))["resourceClaims"]]
    assert claims == ["compute-domain-channel", "efa"]


def test_gb200_brings_a_compute_domain() -> None:
    documents = read_back(manifest("p6e-gb200.36xlarge", 18, image=IMAGE, efa_interfaces=4))

    domain = documents["ComputeDomain"]
    assert problems(domain) == []
    assert domain["spec"]["numNodes"] == 18
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    pod = worker_pod(documents)
    assert pod["resourceClaims"] == [
        {"name": "compute-domain-channel", "resourceClaimTemplateName": template}
    ]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "compute-domain-channel"}]
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert "-x NCCL_MNNVL_ENABLE=1 " in launcher(
        manifest("p6e-gb200.36xlarge", 18, image=IMAGE, efa_interfaces=4)
    )
    over_efa = manifest("p6e-gb200.36xlarge", 18, image=IMAGE, efa_interfaces=4, mnnvl=False)
    assert "-x NCCL_MNNVL_ENABLE=0 " in launcher(over_efa)
    assert "ComputeDomain" not in over_efa


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instance_type": "p5.49xlarge"}, "the catalogue does not know p5.49xlarge; similar: p5.4xlarge"),
        ({"instance_type": "m5.4xlarge"}, "m5.4xlarge has no accelerators"),
        ({"instance_type": "p6e-gb200.36xlarge"}, "give 4 or 8, as it was launched"),
        ({"instance_type": "g5.xlarge"}, "no EFA"),
        ({"nodes": 0}, "0 nodes: at least one"),
        ({"image": "a\nprivileged: true"}, "has characters"),
        ({"image": "$(reboot)"}, "has characters"),
        ({"name": "Nccl_Test"}, "has characters"),
        ({"collective": "alltoall"}, "nccl-tests measures no collective 'alltoall'"),
    ],
)
def test_values_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        manifest(**{"instance_type": "p5.48xlarge", "nodes": 4, "image": IMAGE} | arguments)


def test_a_manifest_measures_the_collective_that_is_asked_for() -> None:
    script = launcher(manifest("p5.48xlarge", 4, image=IMAGE, collective="all_to_all"))

    assert "/opt/nccl-tests/build/alltoall_perf -b" in script and "collective=all_to_all " in script


def test_both_jobs_measure_what_the_gates_are_for() -> None:
    for gate in gates():
        script = launcher(manifest(gate.type, 4, image=IMAGE))
        (single,) = re.findall(r"run single (\d+G)", script)
        fabric = re.findall(r"run fabric (\d+G)", script)
        largest = SIZES[single] if gate.scope == "single" else SIZES[fabric[0]]
        assert largest >= gate.min_size, gate
        group = cluster_of(gate.type)["node_groups"]["gpu"]  # what the script for Slurm reads
        assert f"{group['nccl_largest_gib']}G" == fabric[0], gate

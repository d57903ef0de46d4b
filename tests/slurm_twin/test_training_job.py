"""The batch script of a PyTorch job in a real Slurm: a node that fails, the end of its time, a container."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from project import ROOT
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines

TORCHRUN = r"""#!/usr/bin/python3
# In the place of torchrun and its workers: a step is a folder, and SIGUSR1 writes one more.
import os, pathlib, signal, sys, time
given = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
node, rank = os.environ["SLURMD_NODENAME"], given["node-rank"]
folder = pathlib.Path(os.environ["CHECKPOINTS"])
resumed = pathlib.Path(os.environ["RESUME_FROM"]).name
with open("/shared/started", "a") as file:
    print(f"{node} rank {rank} master {given['master-addr']} from [{resumed}]", file=file)
step = int(resumed.partition("-")[2] or 0)

def save(number):
    (folder / f"step-{number}.tmp").mkdir()
    (folder / f"step-{number}.tmp").rename(folder / f"step-{number}")

def told(*_):
    save(step + 100)
    open("/shared/told", "a").write("told\n")

def lines():
    with open("/shared/started") as file:
        return len(file.readlines())

if rank == "0":
    # as in torchrun: nobody trains before all nodes have come
    while lines() % int(os.environ["SLURM_NNODES"]):
        time.sleep(0.05)
    signal.signal(signal.SIGUSR1, told)
    save(step + 1)
    (folder / "step-999.tmp").mkdir(exist_ok=True)
    (folder / ".hidden").mkdir(exist_ok=True)
while not os.path.exists("/shared/enough"):
    time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def cluster(machines: Machines) -> Twin:
    """Four nodes; a job that is queued again starts soon."""
    return machines().fresh({"SchedulerParameters": "requeue_delay=1", "KillWait": "2"})


@pytest.fixture
def twin(cluster: Twin) -> Iterator[Twin]:
    """With the stand-in of torchrun, and without traces."""
    cluster.run("rm -rf /shared/* /home/alice/*.out")
    for node in cluster.nodes:
        cluster.put(node, "/usr/bin/torchrun", TORCHRUN, mode=0o755)
    yield cluster
    cluster.run("scancel --user=alice; scontrol update nodename=ALL state=resume 2>/dev/null", check=False)
    cluster.wait(lambda: cluster.up() == 4, "nodes to be idle")


def script(name: str = "parallelcluster-p5", *options: str, kind: str = "pytorch") -> str:
    """A job of two nodes of a shipped environment, with its options for the twin's partition."""
    command = [sys.executable, "-m", "ultracluster", "job", "write", name, "--nodes", "2", *options]
    command += ["--framework", kind, "--checkpoints", "/shared/checkpoints", "--script", "train.py"]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    lines = [line for line in made.splitlines() if not line.startswith("#SBATCH --partition")]
    return "\n".join(lines) + "\n"


def started(twin: Twin) -> list[str]:
    """In order of time, by node within one start."""
    lines = twin.run("cat /shared/started 2>/dev/null", check=False).stdout.splitlines()
    return [line for first in range(0, len(lines), 2) for line in sorted(lines[first : first + 2])]


def states(twin: Twin, job: int) -> list[str]:
    return twin.job(job)["job_state"]


def test_a_failed_node_queues_the_job_again_and_it_goes_on_from_its_checkpoint(twin: Twin) -> None:
    job = twin.submit(script("parallelcluster-p5", "--no-look"))
    twin.wait(lambda: len(started(twin)) == 2, "both nodes to start")
    assert started(twin) == ["n1 rank 0 master n1 from []", "n2 rank 1 master n1 from []"]
    twin.wait(lambda: "step-1" in twin.run("ls /shared/checkpoints", check=False).stdout, "a checkpoint")

    twin.run("scontrol update nodename=n1 state=down reason=gone")

    twin.wait(lambda: len(started(twin)) == 4, "the job to start again")
    assert started(twin)[2:] == ["n2 rank 0 master n2 from [step-1]", "n3 rank 1 master n2 from [step-1]"]
    assert twin.job(job)["restart_cnt"] == 1
    twin.run("touch /shared/enough")
    twin.wait(lambda: states(twin, job) == ["COMPLETED"], "the job to end")


def test_the_program_is_told_before_its_time_ends_and_torchrun_is_not_ended_by_it(twin: Twin) -> None:
    job = twin.submit(script("parallelcluster-p5", "--no-look", "--time", "1"), "--signal=B:USR1@57")
    twin.wait(lambda: len(started(twin)) == 2, "both nodes to start")

    twin.wait(lambda: twin.run("cat /shared/told", check=False).stdout, "the signal")

    assert states(twin, job) == ["RUNNING"]
    assert "step-100" in twin.run("ls /shared/checkpoints").stdout
    twin.run("touch /shared/enough")
    log = f"/home/alice/train-{job}.out"
    assert "Asked for a checkpoint (SIGUSR1)." in twin.run(f"cat {log}").stdout


def test_a_signal_to_the_job_does_not_hide_how_it_ends(twin: Twin) -> None:
    text = script("parallelcluster-p5", "--no-look")
    job = twin.submit(text, "--nodes=1", "--ntasks=1")
    twin.wait(lambda: started(twin), "the node to start")
    for _ in range(3):
        twin.run(f"scancel --signal=USR1 --batch {job}")
    twin.wait(lambda: twin.run("cat /shared/told", check=False).stdout, "the signal")
    twin.run("touch /shared/enough")
    twin.wait(lambda: states(twin, job) == ["COMPLETED"], "the job to end well")
    job = twin.submit(text.replace("exec torchrun", "exit 7; torchrun"), "--nodes=1", "--ntasks=1")
    twin.wait(lambda: states(twin, job) == ["FAILED"], "the job to fail")
    assert twin.job(job)["exit_code"]["return_code"]["number"] == 7


def test_inside_a_container_the_list_is_that_of_the_step(twin: Twin) -> None:
    """Where there is no scontrol."""
    text = script("parallelcluster-p5", "--no-look").replace("command -v scontrol", "command -v no-scontrol")
    twin.submit(text, "--nodes=3", "--exclude=n1")
    twin.wait(lambda: len(started(twin)) == 3, "all nodes to start")
    assert sorted(line.split(" from")[0] for line in started(twin)) == [
        "n2 rank 0 master n2",
        "n3 rank 1 master n2",
        "n4 rank 2 master n2",
    ]
    twin.run("touch /shared/enough")


def test_hyperpods_own_resume_is_asked_for(twin: Twin) -> None:
    """By a plug-in that knows the option as HyperPod's does: srun takes it."""
    text = script("prod", "--no-look")
    assert "srun --auto-resume=1 " in text and "--requeue" not in text
    twin.submit(text)
    twin.wait(lambda: len(started(twin)) == 2, "both nodes to start")
    twin.run("touch /shared/enough")


def test_a_node_that_lacks_a_device_is_named_before_anything_starts(twin: Twin) -> None:
    job = twin.submit(script("parallelcluster-p5"))
    twin.wait(lambda: states(twin, job) == ["FAILED"], "the job to fail")
    said = twin.run(f"cat /home/alice/train-{job}.out").stdout
    assert "n1 lacks: " in said and "n2 lacks: " in said and "0 of 32 EFA interfaces" in said
    assert not started(twin)


RAY = r"""#!/usr/bin/python3
# In the place of Ray: a head that answers at its port until it is stopped, workers that stay while it does.
import os, pathlib, socket, subprocess, sys, time
given = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("--") and "=" in word)
shared, node = pathlib.Path("/shared"), os.environ["SLURMD_NODENAME"]
assert os.environ["RAY_AUTH_MODE"] == "token" and len(os.environ["RAY_AUTH_TOKEN"]) == 64
with open(shared / "ray", "a") as file:
    print(node, *sys.argv[1:], file=file)
if sys.argv[1] == "stop":
    subprocess.run(["kill", (shared / "head").read_text()], check=True)
elif "--head" in sys.argv:
    text = (
        "import socket\nlistener = socket.create_server(('', %s))\nkept = []\n"
        "while True:\n    kept.append(listener.accept())" % given["port"]
    )
    child = subprocess.Popen(["/usr/bin/python3", "-c", text])
    (shared / "head").write_text(str(child.pid))
    while True:
        try:
            socket.create_connection((node, int(given["port"]))).close()
            break
        except OSError:
            time.sleep(0.05)
else:
    host, port = given["address"].split(":")
    with socket.create_connection((host, int(port))) as head:
        (shared / "joined").touch()
        head.recv(1)
    sys.exit(1)
"""
MODULE = """
import os
def init(address):
    assert address.startswith(os.environ["SLURMD_NODENAME"] + ":"), address
def nodes():
    return [{"Alive": True}, {"Alive": os.path.exists("/shared/joined")}]
"""


def test_ray_is_on_all_nodes_of_a_job_and_ends_with_its_program(twin: Twin) -> None:
    for node in twin.nodes:
        twin.put(node, "/usr/bin/ray", RAY, mode=0o755)
        twin.put(node, "/usr/lib/python3/dist-packages/ray.py", MODULE)
        twin.put(
            node,
            "/usr/bin/python",
            "#!/bin/sh\necho driver $RAY_ADDRESS; exit $(cat /shared/code)\n",
            mode=0o755,
        )
    for code, state in (("0", "COMPLETED"), ("7", "FAILED")):
        twin.run(f"rm -f /shared/joined /shared/ray; echo {code} >/shared/code")
        job = twin.submit(script("parallelcluster-p5", "--no-look", kind="ray"))
        twin.wait(lambda job=job: states(twin, job) in (["COMPLETED"], ["FAILED"]), "the job to end")
        log = twin.run(f"cat /home/alice/train-{job}.out").stdout
        assert states(twin, job) == [state], log
        assert f"driver n1:{20000 + job % 10000}" in log
        seen = twin.run("cat /shared/ray").stdout
        assert "n1 start --head" in seen and "--dashboard-host=127.0.0.1" in seen and "n1 stop" in seen
        assert f"n2 start --address=n1:{20000 + job % 10000} --block" in seen
        token = twin.run("stat -c %a /home/alice/.ray/auth_token").stdout
        assert token.strip() == "600"

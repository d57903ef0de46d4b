"""Who reaches a node by SSH: real sshd, real jobs, and pam_slurm_adopt as the step `job_ssh` sets it up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest
from slurm_twin.configuration import ADDRESS, CONTROLLER
from slurm_twin.root import NoTwinError
from slurm_twin.twin import Twin

NODES = ["n1", "n2"]
SLEEP = "#!/bin/bash\nsleep 600\n"
_SCRIPTS = "/opt/ultracluster/scripts"
_CLUSTER = {
    "schema": 1,
    "environment": "dev",
    "cluster": "dev",
    "orchestrator": "hyperpod-slurm",
    "release": None,
    "node_groups": {
        "gpu": {"role": "compute", "instance_type": "p5.48xlarge", "accelerator": "none"},
        "entrance": {"role": "login", "instance_type": "m5.xlarge", "accelerator": "none"},
    },
    "job_ssh": {"admins": ["ubuntu"]},
    "mounts": {"openzfs": {"path": "/home", "dns_name": "fs.example.com", "volume_path": "/fsx"}},
}
_RESOURCES = {
    "ClusterType": "Slurm",
    "SlurmConfig": {"PrimaryControllerIp": "10.77.9.9"},
    "InstanceGroups": [
        {
            "Name": "gpu",
            "InstanceType": "ml.p5.48xlarge",
            "Instances": [
                {"InstanceName": name, "InstanceId": "i-0", "CustomerIpAddress": f"10.77.1.{number}"}
                for number, name in enumerate(NODES, start=2)
            ],
        },
        {
            "Name": "entrance",
            "InstanceType": "ml.m5.xlarge",
            "Instances": [{"InstanceName": "l", "InstanceId": "i-1", "CustomerIpAddress": ADDRESS}],
        },
    ],
}
_STEP = f"ULTRACLUSTER_LINGER=0 bash -c 'source {_SCRIPTS}/lib/entry.sh; entry::main job_ssh'"
_MODULE = "/usr/lib/x86_64-linux-gnu/security/pam_slurm_adopt.so"
_BOOT = f"""#!/bin/bash
set -e
mkdir -p /opt/ml/config
echo {shlex.quote(json.dumps(_RESOURCES))} >/opt/ml/config/resource_config.json
echo {shlex.quote(json.dumps(_CLUSTER))} >{_SCRIPTS}/cluster.json
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
# as where systemd runs; the module is not here, and it is optional
echo 'session optional pam_systemd.so' >>/etc/pam.d/common-session
{_STEP}
/usr/sbin/sshd
"""


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    users = ("alice", "bob", "ubuntu")
    try:
        with Twin(nodes=2, conf={"PrologFlags": "Contain"}, configless=True, users=users, boot=_BOOT) as made:
            yield made
    except NoTwinError as error:
        pytest.skip(str(error))


@pytest.fixture
def job(twin: Twin) -> Iterator[int]:
    """Of alice, on n1."""
    made = start(twin, "--nodelist=n1")
    yield made
    end(twin)


def start(twin: Twin, *options: str, user: str = "alice") -> int:
    made = twin.submit(SLEEP, *options, user=user)
    twin.wait(lambda: twin.job(made)["job_state"] == ["RUNNING"], "the job to run")
    return made


def end(twin: Twin) -> None:
    twin.run("scancel --user=alice; scancel --user=bob")
    twin.wait(lambda: twin.up() == len(NODES), "the jobs to end")


def ssh(twin: Twin, machine: str, node: str, user: str, command: str = "hostname") -> CompletedProcess[str]:
    """From a login shell of this machine to that node, without a question."""
    there = shlex.quote(f"ssh -o BatchMode=yes {node} {shlex.quote(command)}")
    return twin.on(machine, f"bash --login -c {there}", user, check=False)


def said(twin: Twin, node: str) -> str:
    """The last line of the step's run on a node, which runs again."""
    return twin.on(node, f"{_STEP} 2>&1", check=False).stdout.splitlines()[-1]


def test_a_user_reaches_the_nodes_of_his_own_job_only(twin: Twin, job: int) -> None:
    assert ssh(twin, CONTROLLER, "n1", "alice").stdout == "n1\n"
    for node, user in (("n2", "alice"), ("n1", "bob"), ("n2", "bob")):
        refused = ssh(twin, CONTROLLER, node, user)
        assert refused.returncode == 255 and "no active jobs on this node" in refused.stderr
    assert ssh(twin, "n1", "n2", "alice").returncode == 255
    twin.run(f"scancel {job}")
    twin.wait(lambda: twin.up() == len(NODES), "the job to end")
    assert ssh(twin, CONTROLLER, "n1", "alice").returncode == 255


def test_nodes_of_one_job_reach_each_other(twin: Twin) -> None:
    start(twin, "--nodes=2", user="bob")
    try:
        assert ssh(twin, "n1", "n2", "bob").stdout == "n2\n"
        assert ssh(twin, "n2", "n1", "bob").stdout == "n1\n"
    finally:
        end(twin)


def test_what_he_starts_there_is_of_the_job_and_ends_with_it(twin: Twin, job: int) -> None:
    if twin.cgroups.mode != "disabled":
        assert (
            f"/job_{job}/step_extern" in ssh(twin, CONTROLLER, "n1", "alice", "cat /proc/self/cgroup").stdout
        )
    left = (
        "setsid sleep 987 </dev/null >/dev/null 2>&1 & "
        "for i in $(seq 6000); do pgrep -fx 'sleep 987' && exit; sleep 0.1; done; exit 1"
    )
    assert ssh(twin, CONTROLLER, "n1", "alice", left).returncode == 0
    twin.run(f"scancel {job}")
    twin.wait(lambda: twin.on("n1", "pgrep -fx 'sleep 987'", check=False).returncode, "it to end")


def test_administrators_get_in_and_login_nodes_are_open(twin: Twin) -> None:
    assert ssh(twin, CONTROLLER, "n1", "ubuntu").stdout == "n1\n"
    assert ssh(twin, "n1", CONTROLLER, "bob").stdout == f"{CONTROLLER}\n"


def test_each_user_has_one_key_pair_made_once(twin: Twin) -> None:
    twin.run("rm -rf /home/bob/.ssh")
    many = " & ".join(["bash --login -c true"] * 6)
    for machine in (CONTROLLER, "n1"):
        twin.on(machine, f"{many} & wait", "bob")
    twin.run("cd /home/bob/.ssh; cut -d ' ' -f 1,2 authorized_keys | sort -u | grep . >/tmp/authorized")
    found = twin.run("cd /home/bob/.ssh; stat -c '%n %U %a' *; ls -A | wc -l; ssh-keygen -yf id_ultracluster")
    lines = found.stdout.splitlines()
    assert lines[:3] == ["authorized_keys bob 600", "id_ultracluster bob 600", "2"]
    assert lines[3].startswith(twin.run("cat /tmp/authorized").stdout.strip())
    # his own keys stay
    twin.run(
        "printf 'ssh-ed25519 AAAA own' >/home/alice/.ssh/authorized_keys; rm /home/alice/.ssh/id_ultracluster"
    )
    twin.on("n1", "bash --login -c true", "alice")
    assert "ssh-ed25519 AAAA own\n" in twin.run("cat /home/alice/.ssh/authorized_keys").stdout
    assert ssh(twin, "n1", CONTROLLER, "alice").stdout == f"{CONTROLLER}\n"


def test_a_replaced_node_is_known_by_its_new_key_and_an_impostor_is_not(twin: Twin) -> None:
    key = "cat /home/.ultracluster/node-keys/n2"
    before = twin.run(key).stdout
    twin.replace("n2")
    twin.wait(lambda: twin.up() == len(NODES), "n2")
    assert twin.run(key).stdout != before
    assert ssh(twin, CONTROLLER, "n2", "ubuntu").stdout == "n2\n"
    assert ssh(twin, CONTROLLER, "10.77.1.3", "ubuntu").stdout == "n2\n"
    assert twin.on(CONTROLLER, "rm -f /home/.ultracluster/node-keys/n2", "bob", check=False).returncode != 0
    twin.on("n2", "rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key")
    gone = "for i in $(seq 6000); do kill -0 $old 2>/dev/null || break; sleep 0.1; done"
    twin.on("n2", f"old=$(pgrep -o -x sshd); kill $old; {gone}; /usr/sbin/sshd")
    refused = ssh(twin, CONTROLLER, "n2", "ubuntu")
    assert refused.returncode == 255 and "Host key verification failed" in refused.stderr
    assert said(twin, "n2").startswith("READY")
    assert ssh(twin, CONTROLLER, "n2", "ubuntu").stdout == "n2\n"


def test_sessions_stay_where_they_were_adopted(twin: Twin) -> None:
    pam = twin.on("n1", "cat /etc/pam.d/sshd /etc/pam.d/ultracluster-common-session").stdout
    assert "@include ultracluster-common-session # ultracluster\n" in pam
    assert "pam_unix.so" in pam and "session optional pam_systemd.so" not in pam
    # logins that are not SSH have what they had
    assert "pam_systemd.so" in twin.on("n1", "cat /etc/pam.d/common-session").stdout
    assert said(twin, "n1").startswith("READY")


def test_without_the_module_nobody_but_administrators_gets_in(twin: Twin, job: int) -> None:
    twin.on("n1", f"mv {_MODULE} /root/")
    try:
        assert ssh(twin, CONTROLLER, "n1", "alice").returncode == 255  # also before the step runs again
        assert said(twin, "n1").startswith("READY")
        assert ssh(twin, CONTROLLER, "n1", "alice").returncode == 255
        assert ssh(twin, CONTROLLER, "n1", "ubuntu").stdout == "n1\n"
        assert "@include common-session\n" in twin.on("n1", "cat /etc/pam.d/sshd").stdout
    finally:
        twin.on("n1", f"mv /root/pam_slurm_adopt.so {_MODULE}")
    assert said(twin, "n1").startswith("READY")
    assert ssh(twin, CONTROLLER, "n1", "alice").stdout == "n1\n"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("99-broken.conf", "sshd refuses its configuration"),
        ("00-a.conf", "sshd's own configuration turns PAM off"),
    ],
)
def test_what_sshd_does_not_take_is_not_left_to_it(twin: Twin, broken: str, why: str) -> None:
    text = {"99-broken.conf": "NoSuchThing yes", "00-a.conf": "UsePAM no"}[broken]
    folder, ours = "/etc/ssh/sshd_config.d", "00-ultracluster-jobs.conf"
    twin.on("n1", f"sed -i '/# ultracluster$/d' /etc/pam.d/sshd; rm -f {folder}/{ours}")
    before = twin.on("n1", "cat /etc/pam.d/sshd").stdout
    twin.on("n1", f"echo '{text}' >{folder}/{broken}")
    try:
        end = said(twin, "n1")
        assert end.startswith("DEGRADED job_ssh") and why in end
        assert twin.on("n1", "cat /etc/pam.d/sshd").stdout == before
        assert ours not in twin.on("n1", f"ls {folder}").stdout
    finally:
        twin.on("n1", f"rm {folder}/{broken}")
    # the line that stood for what is included is gone with ours: as after the distribution's update
    twin.on("n1", "echo '@include common-session' >>/etc/pam.d/sshd")
    assert said(twin, "n1").startswith("READY")
    assert ssh(twin, CONTROLLER, "n1", "bob").returncode == 255

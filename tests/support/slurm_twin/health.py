"""The health loop on the nodes of a twin: laid there by the step that lays it on real ones.

No node has a GPU: `nvidia-smi` is that of the tests of checks, which says what files in /run/fake/gpus tell,
and `systemctl` starts the one service that the step makes.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import tarfile
from collections.abc import Mapping
from itertools import count
from typing import Any

from project import ROOT
from slurm_twin.twin import Twin

FAKES = ROOT / "tests/lifecycle_scripts/fakes"
SYSTEMCTL = """#!/bin/bash
case "$*" in
  "stop ultracluster-health.service")
    # with what it has started, as systemd does; its checks have sessions of their own, as on a node
    if pid=$(cat /run/health.pid); then
      kill -- "-$pid"
      kill -CONT -- "-$pid"
      while kill -0 -- "-$pid"; do sleep 0.05; done
      rm /run/health.pid
    fi 2>/dev/null
    ;;
  "restart ultracluster-health.service")
    "$0" stop ultracluster-health.service
    export ULTRACLUSTER_HEALTH_TICK={tick} ULTRACLUSTER_HEALTH_PAUSE={pause}
    setsid python3 -IS /opt/ultracluster/health/loop/main.py watch >>/run/twin/health.log 2>&1 </dev/null &
    echo $! >/run/health.pid
    ;;
  reboot | "--force reboot") kill -TERM 1 ;;
esac
"""
CONF = {
    "Prolog": "/opt/ultracluster/prolog",
    "Epilog": "/opt/ultracluster/epilog",
    "PrologFlags": "Alloc",
    "SchedulerParameters": "bf_interval=1,sched_interval=2,batch_sched_delay=0,nohold_on_prolog_fail,"
    "requeue_delay=1",
    "RebootProgram": "/usr/sbin/reboot",
    "KillWait": "2",
}
BESIDES = (
    "clocks",
    "dcgm",
    "disks",
    "ecc",
    "efa",
    "fabric_manager",
    "limits",
    "neuron",
    "nvlink",
    "time_sync",
)
"""Checks that nothing in a twin breaks: nodes share two processors."""
BOOT = """#!/bin/bash
set -eu
mkdir -p /run/fake/gpus /opt/fakes
base64 -d <<'END' | tar -xz -C /
{files}
END
exec 9>/shared/.image.lock
flock 9
if [ -e /shared/.image.tar ]; then
  flock -u 9
  tar -xf /shared/.image.tar -C /
else
  cd /opt/ultracluster/scripts
  export ULTRACLUSTER_LINGER=0
  export ENTRY_IDENTIFY=entry::identify_pcs ENTRY_GROUP={group}
  bash -c 'source lib/entry.sh; entry::main health' 9>&-
  tar -cf /shared/.image.new -C / opt/ultracluster etc/systemd/system var/lib/ultracluster
  mv /shared/.image.new /shared/.image.tar
fi
[ -e /run/health.pid ] || systemctl restart ultracluster-health.service 9>&-
"""


def boot(cluster: dict[str, Any], group: str, *, tick: float = 1, pause: float = 1) -> str:
    """For `Twin(boot=...)`: the step `health`, with this `cluster.json`, on the first node of the group; the
    others boot as from an image of it.

    Args:
        tick: seconds between two rounds of the service, 15 on a node.
        pause: seconds between two looks that may give a node back, 60 on a node.
    """
    systemctl = SYSTEMCTL.replace("{tick}", str(tick)).replace("{pause}", str(pause))
    files = {
        "opt/ultracluster/scripts/cluster.json": json.dumps(cluster),
        "usr/local/bin/systemctl": systemctl,
        "usr/local/bin/nvidia-smi": '#!/bin/bash\nFAKE=/run/fake exec /opt/fakes/nvidia-smi "$@"\n',
        "opt/fakes/nvidia-smi": (FAKES / "nvidia-smi").read_text(),
        "opt/fakes/_fake.bash": (FAKES / "_fake.bash").read_text(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return BOOT.format(files=base64.encodebytes(packed.getvalue()).decode().strip(), group=group)


def cluster(settings: dict[str, Any]) -> dict[str, Any]:
    """`cluster.json` of one group, `gpu`, with these settings of the health loop."""
    group = {
        "role": "compute",
        "instance_type": "p5.48xlarge",
        "accelerators": 8,
        "accelerator": "nvidia",
        "efa_interfaces": 0,
        "local_nvme_disks": 0,
    }
    return {
        "schema": 1,
        "environment": "twin",
        "cluster": "twin",
        "orchestrator": "pcs",
        "release": None,
        "node_groups": {"gpu": group},
        "health": settings,
    }


# ---- for tests

HOME = "/opt/ultracluster/health"
LOG = "/var/log/ultracluster/health.log"
"""On the node's disk, which a reboot leaves as it is."""
LOCK = "ultracluster_health"
"""The reservation that nodes take before they drain themselves."""
XID = {
    64: "64, pid='<unknown>', name=<unknown>, Row Remapper Error: (0x0) - New row failed for remapping",
    79: "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    94: "94, pid=1896, name=python, Contained: SM (0x1). RST: No, D-RST: No",
    95: "95, pid='<unknown>', name=<unknown>, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
}
BUSES = count(16)
"""Another GPU each time: the same line again within a minute is no further fault."""
HELD = frozenset({"DRAIN", "FAIL", "DOWN"})
REBOOTS = frozenset({"REBOOT_REQUESTED", "REBOOT_ISSUED"})
AT_REST = """
mkdir -p /run/ultracluster/health
exec flock /run/ultracluster/health/look.lock {command}
"""
"""A command while the service is not in a look: the checks of one go on without it, and read what the kernel
reports next."""
UNTOUCHED = f"""
untouched() {{
  ! grep -qv 'notice of EC2: .* unreachable' {LOG} && [ -z "$(ls -A /run/fake/gpus)" ] &&
    [ -e /run/ultracluster/health/look.json ] &&
    ! ls /var/lib/ultracluster/health/drained.json /var/lib/ultracluster/health/open.json &&
    kill -0 "$(cat /run/health.pid)"
}} >/dev/null 2>&1
"""
"""The service runs, has looked, and has met nothing but the lack of EC2's metadata: a test that begins can
have it as it is."""
STOP = f"{UNTOUCHED}! untouched || exit 0" + AT_REST.format(
    command="systemctl stop ultracluster-health.service"
)
FORGET = f"""
set -e
{UNTOUCHED}
if untouched; then
  exec cat >{HOME}/settings.json
fi
rm -rf /run/fake/gpus/* /run/ultracluster/health/* {LOG} /var/lib/ultracluster/health/{{drained,open}}.json
cat >{HOME}/settings.json
# all that the kernel has said is read
journalctl --dmesg --boot --quiet --lines=1 --output=json |
  jq '{{cursor: .__CURSOR, boot: ._BOOT_ID, at: .__MONOTONIC_TIMESTAMP | tonumber}}' |
  tee /var/lib/ultracluster/health/{{xid,watch}}.state >/dev/null
systemctl restart ultracluster-health.service
"""


def begin(twin: Twin, settings: Mapping[str, Any]) -> None:
    """What every test begins with, each point of it read back: no job, no reboot that is still to come, all
    nodes idle in slurmctld's eyes since their present boot, and a service on each that remembers nothing and
    has had its first look."""
    ended = "; ".join(f"scancel --user={user}" for user in twin.users)
    twin.run(f"{ended}; scontrol delete reservation={LOCK}", check=False)
    twin.wait(lambda: _still(twin), "nodes that nothing changes any more")
    for node, state in twin.states().items():
        resume = "State=RESUME" if state.states & HELD else ""
        twin.run(f"scontrol update NodeName={node} Comment='' Weight=1 {resume}")
    for node in twin.nodes:
        twin.on(node, FORGET, stdin=json.dumps(dict(settings)))
    looked = "test -e /run/ultracluster/health/look.json"
    twin.wait(lambda: all(not twin.on(node, looked, check=False).returncode for node in twin.nodes), "a look")
    twin.wait(lambda: {one.states for one in twin.states().values()} == {frozenset({"IDLE"})}, "idle nodes")


def _still(twin: Twin) -> bool:
    """Stops what runs of the services. True where no job, no reboot and no service is left that would."""
    if not all(twin.ready(node) for node in twin.nodes):
        return False
    with contextlib.suppress(OSError, ValueError, AssertionError):  # of a node that goes down at this moment
        for node in twin.nodes:
            twin.on(node, STOP)
        states = twin.states()
        waiting = [node for node, one in states.items() if one.states & REBOOTS == {"REBOOT_REQUESTED"}]
        if waiting:
            twin.run(f"scontrol cancel_reboot {','.join(waiting)}", check=False)
        busy = any(one.states & (REBOOTS | {"COMPLETING", "NOT_RESPONDING"}) for one in states.values())
        jobs = twin.run("squeue --noheader").stdout.strip()
        return not busy and not jobs and all(twin.registered(node) for node in twin.nodes)
    return False


def set_node(twin: Twin, node: str, settings: Mapping[str, Any]) -> None:
    twin.put(node, f"{HOME}/settings.json", json.dumps(dict(settings)))


def breaks(twin: Twin, node: str, xid: int) -> None:
    """The kernel reports it, of another GPU than before."""
    twin.journal(node, f"NVRM: Xid (PCI:0000:{next(BUSES) % 256:02x}:00): {XID[xid]}")


def log(twin: Twin, node: str) -> str:
    return twin.on(node, f"cat {LOG}", check=False).stdout


def held(twin: Twin) -> dict[str, str]:
    """The reasons of the nodes that take no job."""
    return {node: one.reason for node, one in twin.states().items() if one.states & HELD}


def program(twin: Twin, node: str) -> None:
    """HealthCheckProgram, as slurmd calls it."""
    twin.on(node, f"SLURMD_NODENAME={node} {HOME}/program")


def found_by_program(twin: Twin, node: str) -> None:
    """HealthCheckProgram comes until it has taken the node out: a check may be late on a busy machine."""
    twin.wait(lambda: program(twin, node) or held(twin), f"HealthCheckProgram to drain {node}")


def job_on(
    twin: Twin, *options: str, user: str = "alice", script: str = "srun sleep 600", first: str = ":"
) -> int:
    """A job whose script has begun: Slurm calls it running before its prolog has ended."""
    text = f"#!/bin/bash\n{first}\ntouch ~/ready.$SLURM_JOB_ID\n{script}\n"
    job = twin.submit(text, "--requeue", "--exclusive", *options, user=user)
    ready = f"test -e /home/{user}/ready.{job}"
    twin.wait(lambda: not twin.run(ready, check=False).returncode, f"job {job} to run")
    return job

"""The health loop on the nodes of a twin: laid there by the step that lays it on real ones.

No node has a GPU: `nvidia-smi` is that of the tests of checks, which says what files in /run/fake/gpus tell,
and `systemctl` starts the one service that the step makes.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from typing import Any

from project import ROOT

FAKES = ROOT / "tests/lifecycle_scripts/fakes"
SYSTEMCTL = """#!/bin/bash
case "$*" in
  "restart ultracluster-health.service")
    [ ! -e /run/health.pid ] || kill "$(cat /run/health.pid)"
    export ULTRACLUSTER_HEALTH_TICK={tick} ULTRACLUSTER_HEALTH_PAUSE={pause}
    setsid python3 -ISB /opt/ultracluster/health/loop/main.py watch >>/run/twin/health.log 2>&1 </dev/null &
    echo $! >/run/health.pid
    ;;
  reboot) kill -TERM 1 ;;
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

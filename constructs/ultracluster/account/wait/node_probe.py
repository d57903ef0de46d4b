"""Runs on a node, with its own Python and nothing else: prints what proves that it is ready, as one line.

Arguments: the number of EFA devices, as `lifecycle_scripts/lib/devices.sh` counts them on this node (empty
where it could not), and the paths that must be mounted. `ULTRACLUSTER_ROOT` stands before every path.
"""

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional  # noqa: UP035, for a Python as old as 3.7

ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")
KEPT = ("run", "entry", "state", "degraded", "reason", "group", "role")


def text(path: str) -> str:
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123, as small as can be
            return file.read()
    except OSError:
        return ""


def output(*command: str) -> Optional[str]:  # noqa: UP045
    """Return what a program prints within 20 s; None if it is not there, fails or does not answer."""
    try:
        done = subprocess.run(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def ended() -> Optional[Dict[str, Any]]:  # noqa: UP006, UP045
    """The end of the last run: a good one leaves a file, any leaves a line."""
    report = text("/var/log/ultracluster/report.jsonl").splitlines()
    for line in [text("/run/ultracluster/ready"), *reversed(report)]:
        try:
            document: Any = json.loads(line)
        except ValueError:
            continue
        if not isinstance(document, dict):
            continue
        if "run" not in document:
            return None  # a step is the newest line: a run is at work, or was killed
        kept: Dict[str, Any] = {key: document[key] for key in KEPT if key in document}  # noqa: UP006
        kept["reason"] = str(kept.get("reason") or "")[:400]
        return kept
    return None


def mounts(paths: List[str]) -> Dict[str, str]:  # noqa: UP006
    """File system type by path, of those that are mounted and answer."""
    found: Dict[str, str] = {}  # noqa: UP006
    for path in paths:
        if output("stat", "--file-system", ROOT + path) is None:  # a dead server would keep us forever
            continue
        for line in text("/proc/self/mounts").splitlines():
            words = line.split(" ")
            if len(words) > 2 and words[1].replace("\\040", " ") == path and words[2] != "autofs":
                found[path] = words[2]
    return found


def domains() -> Optional[int]:  # noqa: UP045
    """Interfaces that libfabric's provider offers; None where the host has no libfabric."""
    for program in ("/opt/amazon/efa/bin/fi_info", "/usr/bin/fi_info"):
        if os.path.exists(ROOT + program):  # noqa: PTH110
            said = output(ROOT + program, "-p", "efa", "-t", "FI_EP_RDM") or ""
            return len({line.split(":", 1)[1].strip() for line in said.splitlines() if "domain:" in line})
    return None


def kubelet() -> str:
    """Whether the kubelet says that it has put the node into the cluster; empty where there is none."""
    if not any(os.path.exists(ROOT + path) for path in ("/usr/bin/kubelet", "/usr/local/bin/kubelet")):  # noqa: PTH110
        return ""
    said = output("journalctl", "--unit=kubelet", "--boot", "--no-pager", "--output=cat") or ""
    # kubernetes/kubernetes, pkg/kubelet/kubelet_node_status.go
    if "Successfully registered node" in said or "Node was previously registered" in said:
        return "registered"
    return (output("systemctl", "show", "--property=ActiveState", "--value", "kubelet") or "unknown").strip()


if __name__ == "__main__":
    efa = int(sys.argv[1]) if sys.argv[1].isdigit() else None
    found = {"run": ended(), "mounts": mounts(sys.argv[2:]), "efa": efa, "domains": domains()}
    sys.stdout.write(json.dumps({"probe": {**found, "kubelet": kubelet()}}) + "\n")

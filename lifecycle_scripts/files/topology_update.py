#!/usr/bin/python3 -IS
"""Keeps Slurm's `topology.yaml` on a head node true to where EC2 has put the nodes.

Asks slurmctld for its nodes and EC2 for their places, and writes what topology.py makes of it: for a trial
slurmctld first, then beside slurm.conf, and back if the real one refuses it. What cannot be asked changes
nothing. Slurm reads the file by itself (topology.yaml(5), from 25.05 on); without it all nodes are alike.

Usage: topology_update.py CONFIG [STATE]; CONFIG has REGION= and CLUSTER=, the name of the ParallelCluster.
Status: 0 done or nothing to do, 1 something could not be asked, or Slurm refused. It prints what it did.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import topology  # noqa: E402 - with -I, this folder is not searched
import topology_slurm as slurm  # noqa: E402

MARK = "# Written by Ultracluster when nodes move. Without this line the file is left alone."
LEAST_SLURM = (25, 11, 3)
"""From here on nodes that are powered down stay in the topology, and a reconfiguration reads it again with
power saving on (Slurm's CHANGELOG, 25.11.3); before 25.11.2 a refused one could end slurmctld."""
OURS = ("", "(null)", "topology/flat", "topology/default", "topology/none")
"""Of `TopologyPlugin`; with another one somebody else writes the topology."""
EVERY = 300
"""Seconds between two changes that only move nodes: each has slurmctld read its whole configuration."""
DEAF = 3600
"""Seconds between two tries with a file that it has not taken in: it talks to every node each time."""
AT_ONCE = 100
"""Instance ids of one question (EC2 API, DescribeInstanceTopology)."""
STATE = "/var/lib/ultracluster/topology.json"


def main(arguments):
    lines = Path(arguments[0]).read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line)
    file = Path(arguments[1] if len(arguments) > 1 else STATE)
    state = read_state(file)
    try:
        said, good = update(settings, state)
    except slurm.UnknownError as error:
        said, good = f"nothing is changed: {error}", False
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        slurm.write(file, json.dumps(state))
    print(said)
    return 0 if good else 1


def update(settings, state):
    """One look, and a change where one is due: what to say of it, and whether that is well."""
    version = slurm.version()
    if version < LEAST_SLURM:
        return f"Slurm {dotted(version)} is older than {dotted(LEAST_SLURM)}: no topology", True
    config = slurm.config()
    plugin = config.get("TopologyPlugin", "").lower()
    if plugin not in OURS:
        return f"TopologyPlugin is {plugin}: the topology is somebody else's", True
    path = Path(config["SLURM_CONF"]).resolve().with_name("topology.yaml")
    before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
    if before is not None and MARK not in before:
        return f"{path} is somebody else's", True
    nodes = slurm.nodes()
    state["places"] = places_of(nodes, settings, state.get("places"))
    places = {node: one["place"] for node, one in state["places"].items() if one["place"]}
    if not places and before is None:
        return "EC2 tells no place of any node: no topology", True
    made = topology.tree(nodes, places)
    wrong = topology.faults(made, nodes)
    if wrong:
        raise slurm.UnknownError(f"what the answers make is not good: {'; '.join(wrong)}")
    text = topology.as_yaml(made, MARK)
    lost = sorted(set(nodes) - slurm.placed()) if before is not None else []
    if text == before and not lost:
        return f"{len(places)} of {len(nodes)} nodes have a place", True
    return change(path, text, before, nodes, lost, state, config)


def change(path, text, before, nodes, lost, state, config):
    """Puts the text in its place where slurmctld takes it; sets `state`."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    if state.get("refused") == digest:
        return f"slurmctld has refused this topology before: {path} stays as it is", False
    every = DEAF if state.get("deaf") and text == before else EVERY
    # a clock that was ahead is no reason to wait for it
    if 0 <= time.time() - state.get("changed", 0) < every:
        return f"slurmctld is told within {every // 60} minutes", True
    if text != before:
        refused = slurm.trial(text, nodes, config.get("PluginDir", ""))
        if refused:
            state["refused"] = digest
            return f"a trial slurmctld refuses the topology ({refused}): {path} stays as it is", False
        slurm.write(path, text)
    state["changed"] = time.time()
    refused = slurm.reconfigure(nodes)
    state["deaf"] = bool(refused)
    if not refused:
        state.pop("refused", None)
        return (f"{path} is new" if text != before else f"slurmctld had lost {', '.join(lost[:5])}"), True
    if text == before:
        return f"slurmctld does not read {path} again: {refused}", False
    state["refused"] = digest
    if before is None:
        path.unlink()
    else:
        slurm.write(path, before)
    if slurm.reconfigure(()):
        # it may have ended with the new file; with the old one it starts
        slurm.run(["systemctl", "restart", "slurmctld.service"], 120)
    return f"slurmctld refuses the topology ({refused}): {path} is as it was", False


def places_of(nodes, settings, before):
    """`{"instance", "place"}` by node. A node that runs keeps its place while EC2 tells no other; one that
    does not run has none, because its next instance may be anywhere."""
    before = before if isinstance(before, dict) else {}
    of_cluster = f"Name=tag:parallelcluster:cluster-name,Values={settings['CLUSTER']}"
    running = "Name=instance-state-name,Values=pending,running"
    query = "Reservations[].Instances[].[InstanceId,PrivateIpAddress]"
    rows = aws(settings, "describe-instances", "--filters", of_cluster, running, "--query", query)
    rows = [row for row in rows if isinstance(row, list) and len(row) == 2] if isinstance(rows, list) else []
    by_address = {address: instance for instance, address in rows if instance and address}
    found = {
        node: {"instance": by_address[at], "place": None} for node, at in nodes.items() if at in by_address
    }
    told = {}
    ids = sorted(one["instance"] for one in found.values())
    for start in range(0, len(ids), AT_ONCE):
        answer = aws(settings, "describe-instance-topology", "--instance-ids", *ids[start : start + AT_ONCE])
        instances = answer.get("Instances") if isinstance(answer, dict) else None
        for instance in instances if isinstance(instances, list) else ():
            place = topology.place_of_instance(instance)
            if place and place["path"]:
                told[instance.get("InstanceId")] = place
    for node, one in found.items():
        old = before.get(node) or {}
        known = old.get("place") if old.get("instance") == one["instance"] else None
        one["place"] = told.get(one["instance"]) or known
    return found


def aws(settings, *words):
    text = slurm.asked(["aws", "ec2", *words, "--region", settings["REGION"], "--output", "json"], 120)
    try:
        return json.loads(text)
    except ValueError:
        raise slurm.UnknownError(f"aws ec2 {words[0]} answers no JSON") from None


def read_state(file):
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def dotted(version):
    return ".".join(str(part).zfill(2) if place < 2 else str(part) for place, part in enumerate(version))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

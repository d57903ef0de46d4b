"""Slurm's topology in a real slurmctld: what the generator writes, and a head node makes of EC2's answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest
from slurm_twin.twin import CONTROLLER, Twin

from tests.slurm_twin.conftest import Machines, considered
from ultracluster.jobs.placement.slurm_topology import Place, as_yaml, blocks, tree

UPDATE = "/opt/ultracluster/scripts/files/topology_update.py"
TRIAL = """
import json, sys
sys.path.insert(0, "/opt/ultracluster/scripts/files")
import topology_slurm
print(json.dumps([topology_slurm.trial(text, nodes) for text, nodes in json.load(sys.stdin)]))
"""
SPOILT = f"""
import runpy, sys
sys.path.insert(0, "/opt/ultracluster/scripts/files")
import topology
whole = topology.as_yaml
topology.as_yaml = lambda *given: whole(*given).replace('children: "', 'children: "no-')
sys.argv = ["update", "/etc/twin-topology", "/tmp/topology.json"]
runpy.run_path("{UPDATE}", run_name="__main__")
"""
AWS = r"""#!/bin/bash
case $2 in
  describe-instances) cat /etc/twin-instances ;;
  *) cat /etc/twin-places ;;
esac
"""
LEAVES = {"n1": "nn-a", "n2": "nn-a", "n3": "nn-b", "n4": "nn-b"}


@pytest.fixture(scope="module")
def cluster(machines: Machines) -> Twin:
    """Four nodes below two leaves."""
    places = {node: Place(path=["nn-1", "nn-2", leaf], block=None) for node, leaf in LEAVES.items()}
    text = as_yaml(tree(list(LEAVES), places))
    conf = {"SchedulerParameters": "max_switch_wait=86400", "TopologyParam": "SwitchAsNodeRank"}
    return machines().fresh(conf, topology_yaml=text)


def clusters(number: int) -> Iterator[tuple[list[str], dict[str, Place]]]:
    """Clusters with the ids, gaps and contradictions that answers may have."""
    chance = random.Random(number)  # noqa: S311
    for _ in range(number):
        nodes = [f"gpu-st-p5-{name}" for name in range(chance.randint(1, 40))]
        width = chance.choice((1, 3, 17))
        ids = [f"nn-{chance.randrange(16**width):0{width}x}" for _ in range(6)] + [
            "nn-[1-3]",
            "unplaced",
            "é",
        ]
        places: dict[str, Place] = {}
        for node in nodes:
            path = chance.sample(ids, chance.randint(0, 4))
            if path and chance.random() < 0.8:
                places[node] = Place(path=path, block=chance.choice([None, *ids]))
        yield nodes, places


def test_a_real_slurmctld_takes_whatever_is_made(cluster: Twin) -> None:
    made = [(as_yaml(tree(nodes, places)), nodes) for nodes, places in clusters(25)]
    made += [(as_yaml(blocks(nodes, places, size=4)), nodes) for nodes, places in clusters(10)]
    wrong = made[0][0].replace('children: "', 'children: "no-')

    done = cluster.run(
        f"python3 -IS -c '{TRIAL}'", stdin=json.dumps([*made, (wrong, made[0][1])]), seconds=120
    )

    *taken, refused = json.loads(done.stdout)
    assert taken == [""] * len(made)
    assert refused


def test_one_switch_is_one_leaf(cluster: Twin) -> None:
    def names(*options: str) -> list[str]:
        found = cluster.run(f"srun {' '.join(options)} printenv SLURMD_NODENAME", user="alice").stdout.split()
        return sorted(found)

    assert names("-N2", "--switches=1") in (["n1", "n2"], ["n3", "n4"])
    holder = cluster.submit("#!/bin/bash\nsleep 600", "--nodelist=n1", "--exclusive")
    cluster.wait(lambda: cluster.job(holder)["job_state"] == ["RUNNING"], "n1 to be taken")
    assert names("-N2", "--exclusive", "--switches=1") == ["n3", "n4"]
    other = cluster.submit("#!/bin/bash\nsleep 600", "--nodelist=n3", "--exclusive")
    cluster.wait(lambda: cluster.job(other)["job_state"] == ["RUNNING"], "n3 to be taken")
    assert names("-N2", "--exclusive") == ["n2", "n4"]
    waiting = cluster.submit("#!/bin/bash\ntrue", "-N2", "--exclusive", "--switches=1@24:00:00")
    considered(cluster, waiting)
    assert cluster.job(waiting)["job_state"] == ["PENDING"]
    cluster.run(f"scancel {holder} {other}")
    cluster.wait(lambda: cluster.job(waiting)["job_state"] == ["COMPLETED"], "a leaf to be free")


def answers(cluster: Twin, leaves: dict[str, str], instances: dict[str, str]) -> None:
    addresses = {
        node: cluster.run(f"scontrol -o show node {node} | grep -o 'NodeAddr=[^ ]*'").stdout.strip()[9:]
        for node in instances
    }
    rows = [[instance, addresses[node]] for node, instance in instances.items()]
    places = [
        {"InstanceId": instance, "NetworkNodes": ["nn-1", "nn-2", leaves[node]]}
        for node, instance in instances.items()
    ]
    cluster.put(CONTROLLER, "/etc/twin-instances", json.dumps(rows))
    cluster.put(CONTROLLER, "/etc/twin-places", json.dumps({"Instances": places}))


def update(cluster: Twin) -> str:
    """One run of the program, as if the last change were long ago."""
    forget = 'sed -i \'s/"changed": [0-9.]*/"changed": 0/\' /tmp/topology.json 2>/dev/null; '
    return cluster.run(
        f"{forget} python3 -IS {UPDATE} /etc/twin-topology /tmp/topology.json", check=False
    ).stdout


def leaves_of(cluster: Twin) -> dict[str, str]:
    """By slurmctld's own word."""
    found: dict[str, str] = {}
    for line in cluster.run("scontrol show topology").stdout.splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if words.get("Level") == "0":
            listed = cluster.run(f"scontrol show hostnames {words['Nodes']}").stdout.split()
            found |= dict.fromkeys(listed, words["SwitchName"])
    return found


def test_the_topology_survives_a_replacement_under_a_running_job(cluster: Twin) -> None:
    cluster.put(CONTROLLER, "/usr/local/bin/aws", AWS, mode=0o755)
    cluster.put(CONTROLLER, "/etc/twin-topology", "REGION=us-east-1\nCLUSTER=dev\n")
    cluster.run("rm -f /etc/slurm/topology.yaml; scontrol reconfigure")
    instances = {node: f"i-{node}" for node in LEAVES}
    answers(cluster, LEAVES, instances)
    assert update(cluster).strip() == "/etc/slurm/topology.yaml is new"
    assert leaves_of(cluster) == LEAVES
    job = cluster.submit("#!/bin/bash\nsrun sleep 600", "--nodelist=n1")
    cluster.wait(lambda: cluster.job(job)["job_state"] == ["RUNNING"], "the job to start")

    moved = {**LEAVES, "n4": "nn-c"}
    cluster.replace("n4")
    answers(cluster, moved, {**instances, "n4": "i-new"})
    assert update(cluster).strip() == "/etc/slurm/topology.yaml is new"
    assert leaves_of(cluster) == moved
    cluster.wait(lambda: cluster.up() == 4 or "IDLE" in cluster.state("n4").states, "n4 to be back")

    # nothing is told of n3 any more: it keeps its place; without an instance it has none, and can be reached
    answers(cluster, moved, {node: one for node, one in instances.items() if node != "n3"} | {"n4": "i-new"})
    update(cluster)
    assert leaves_of(cluster) == {**moved, "n3": "unplaced"}
    assert cluster.run("srun -N3 -w n2,n3,n4 --overlap true", user="alice").returncode == 0
    assert cluster.job(job)["job_state"] == ["RUNNING"]
    cluster.run(f"scancel {job}")


def test_a_topology_that_slurmctld_refuses_is_never_there(cluster: Twin) -> None:
    """An answer that makes a bad file cannot be had, so the file is spoilt on its way."""
    before = cluster.run("cat /etc/slurm/topology.yaml").stdout
    cluster.put(CONTROLLER, "/etc/twin-spoilt.py", SPOILT)
    cluster.run('sed -i \'s/"changed": [0-9.]*/"changed": 0/\' /tmp/topology.json')

    done = cluster.run("python3 -S /etc/twin-spoilt.py", check=False)

    assert done.returncode == 1
    assert "a trial slurmctld refuses the topology" in done.stdout
    assert cluster.run("cat /etc/slurm/topology.yaml").stdout == before
    assert "UP" in cluster.run("scontrol ping").stdout

"""Two teams of an environment file share a cluster as it says, and a job of low priority gives way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes_support import environment
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines, considered
from ultracluster.model import resolve
from ultracluster.model.state_documents import teams_document
from ultracluster.slurm.configuration import slurm_configuration

TEAMS: dict[str, Any] = {
    "research": {"quota": 16, "users": ["alice"]},
    "product": {"quota": 8, "users": ["bob"]},
}
PROGRAM = "/opt/ultracluster/scripts/files/slurm_accounts.py /root/teams.json"
SETTINGS = (
    "AccountingStorageEnforce", "AccountingStorageTRES", "PreemptType", "PreemptMode", "PreemptParameters",
    "PriorityType", "PriorityWeightFairshare", "PriorityWeightQOS", "PriorityWeightAge", "PriorityFlags",
)  # fmt: skip
"""What the project gives a cluster that has teams, of which this is the proof."""
SLEEPS = "#!/bin/bash\nsleep 600\n"
SHORT = {
    # whoever is put back waits no two minutes here, and may be preempted at once
    "SchedulerParameters": "bf_interval=1,sched_interval=2,batch_sched_delay=0,requeue_delay=1",
    "PreemptExemptTime": "00:00:00",
    "PriorityDecayHalfLife": "00:30:00",
}


def document(teams: dict[str, Any]) -> str:
    cluster = resolve(environment({"teams": teams}, base="prod"))
    return json.dumps(teams_document(cluster))


@pytest.fixture(scope="module")
def twin(machines: Machines) -> Iterator[Twin]:
    cluster = resolve(environment({"teams": TEAMS}, base="prod"))
    generated = slurm_configuration(cluster, checks=False)
    given = {name: one.value for name in SETTINGS if (one := generated.get(name))}
    made = machines().fresh(given | SHORT)
    made.put("ctl", "/root/teams.json", document(TEAMS))
    made.run(PROGRAM)
    yield made
    made.run("sacctmgr -i delete account research,product; sacctmgr -i delete qos low,high", check=False)


def states(twin: Twin, job: int) -> list[str]:
    return list(twin.job(job)["job_state"])


def levels(twin: Twin) -> dict[str, tuple[float, float]]:
    """Of each team: its share beside what it used, above 1 where it used less; and its part of all usage."""
    twin.reconfigure()  # usage is counted each minute; a reload does it at once
    shown = twin.run("sshare --all --long --parsable2 --noheader --format=account,user,levelfs,effectvusage")
    rows = [line.split("|") for line in shown.stdout.splitlines()]
    return {row[0].strip(): (float(row[2]), float(row[3])) for row in rows if not row[1] and row[2]}


def test_two_teams_come_to_their_shares(twin: Twin) -> None:
    """Each round both ask for the whole cluster, and one gets it; shares are as 2 to 1."""
    teams = {"alice": "research", "bob": "product"}
    for _ in range(5):
        before = levels(twin)
        twin.run("scontrol update PartitionName=gpu State=DOWN")
        jobs = {
            user: twin.submit("#!/bin/bash\nsleep 2", "--nodes=4", "--exclusive", user=user)
            for user in ("bob", "alice")
        }
        twin.run("scontrol update PartitionName=gpu State=UP")
        twin.wait(lambda jobs=jobs: any(states(twin, job) == ["COMPLETED"] for job in jobs.values()), "one")
        shown = {user: twin.job(job) for user, job in jobs.items()}
        begun = [user for user, job in shown.items() if job["job_state"] != ["PENDING"]]
        first = min(begun, key=lambda user: shown[user]["start_time"]["number"])
        twin.run(f"scancel {' '.join(str(job) for job in jobs.values())}", check=False)
        twin.wait(lambda: twin.up() == 4, "idle nodes")
        assert before[teams[first]][0] == max(before[team][0] for team in teams.values())

    after = levels(twin)
    assert 0.5 < after["research"][1] < 0.82
    assert after["research"][1] + after["product"][1] == pytest.approx(1, abs=0.01)


def test_a_job_of_low_priority_gives_way_and_comes_back(twin: Twin) -> None:
    # the two minutes for a checkpoint are three seconds here
    twin.run("sacctmgr -i modify qos where name=low set gracetime=3")
    script = (
        "#!/bin/bash\ntrap 'echo saved >>saved' TERM\ntouch ready\n"
        "sleep 600 &\nuntil wait; [ $? -le 128 ]; do :; done\n"
    )
    low = twin.submit(script, "--nodes=4", "--exclusive", "--qos=low")
    twin.wait(lambda: states(twin, low) == ["RUNNING"], "the low one to run")
    twin.wait(lambda: not twin.run("ls ready", user="alice", check=False).returncode, "its trap")

    normal = twin.submit("#!/bin/bash\nsleep 5", "--nodes=4", "--exclusive", user="bob")
    twin.wait(lambda: states(twin, normal) == ["RUNNING"], "the normal one to run")
    assert states(twin, low) == ["PENDING"]
    assert twin.run("cat saved", user="alice").stdout.startswith("saved\n")
    # among the others nobody loses a job
    high = twin.submit(SLEEPS, "--nodes=4", "--exclusive", "--qos=high")
    considered(twin, high)
    assert (states(twin, normal), states(twin, high)) == (["RUNNING"], ["PENDING"])
    twin.run(f"scancel {high}")

    twin.wait(lambda: states(twin, low) == ["RUNNING"], "the low one to run again")
    assert states(twin, normal) == ["COMPLETED"]
    assert twin.job(low)["restart_cnt"] == 1
    twin.run(f"scancel --signal=KILL --full {low}; scancel {low}", check=False)
    twin.wait(lambda: twin.up() == 4, "idle nodes")


def test_who_is_in_no_team_runs_nothing(twin: Twin) -> None:
    done = twin.run("sbatch --wrap true --account=product", "alice", check=False)
    assert "Invalid account" in done.stderr

    # and who leaves runs nothing more; what runs of his ends by itself
    job = twin.submit("#!/bin/bash\nsleep 3", user="bob")
    twin.wait(lambda: states(twin, job) == ["RUNNING"], "the job")
    twin.put("ctl", "/root/teams.json", document({**TEAMS, "product": {"quota": 8}}))
    first = twin.run(PROGRAM, check=False)
    assert first.returncode == 1
    assert "bob leaves product when the jobs that run there have ended" in first.stdout
    assert twin.run("sbatch --wrap true", "bob", check=False).returncode != 0
    twin.wait(lambda: states(twin, job) == ["COMPLETED"], "the job to end")
    twin.wait(lambda: twin.run(PROGRAM, check=False).returncode == 0, "bob to leave")
    assert "bob" not in twin.run("sacctmgr -nP show assoc").stdout

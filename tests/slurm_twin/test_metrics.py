"""The collectors with a real slurmctld: what it answers, whose jobs run on a node, and when it is gone.

Also what slurmctld exports by itself: it has the names that were recorded.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from expositions import series
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines
from ultracluster.catalog.metrics import metrics

PROGRAM = "python3 -ISB /opt/ultracluster/scripts/metrics/main.py"
MAIN = f"{PROGRAM} --to /m --state /m/state --settings /m/settings.json"
OPENMETRICS = {"MetricsType": "metrics/openmetrics", "CommunicationParameters": "enable_http"}


@pytest.fixture(scope="module")
def twin(machines: Machines) -> Twin:
    """Four nodes: on two runs a job, one is drained by a health check, one by a person; another job waits."""
    one = machines().fresh(OPENMETRICS)
    one.run("""mkdir -p /m && echo '{"slurm": true}' >/m/settings.json""")
    one.run("scontrol update node=n4 state=drain reason=ultracluster:gpu_count:missing")
    one.run("scontrol update node=n3 state=drain reason='a person | said so'")
    job = one.submit("#!/bin/bash\nsrun sleep 300", "--nodes=2")
    one.wait(lambda: one.job(job)["job_state"] == ["RUNNING"], "the job to run")
    one.submit("#!/bin/bash\nsleep 300", "--nodes=4", user="bob")
    one.wait(lambda: one.on("n1", "pgrep -x sleep", check=False).stdout, "a task")
    one.reconfigure()  # which saves the usage, without which a killed slurmctld does not start again
    return one


def told(twin: Twin, machine: str, collector: str) -> list[tuple[str, dict[str, str], float]]:
    run = twin.run if machine == "controller" else lambda text: twin.on(machine, text)
    return list(
        series(run(f"rm -rf /m/state; {MAIN} --only {collector} >&2; cat /m/{collector}.prom").stdout)
    )


def test_what_slurmctld_knows(twin: Twin) -> None:
    found = told(twin, "controller", "slurm")

    def labels(name: str) -> list[dict[str, str]]:
        return [labels for one, labels, _ in found if one == f"ultracluster_slurm_{name}"]

    assert ("ultracluster_slurm_up", {}, 1.0) in found
    assert {one["slurm_node"]: one["state"] for one in labels("node_state")} == {
        "n1": "mixed", "n2": "mixed", "n3": "drained", "n4": "drained",
    }  # fmt: skip
    assert {(one["slurm_node"], one["check"], one["code"]) for one in labels("node_drained")} == {
        ("n3", "other", ""), ("n4", "gpu_count", "missing"),
    }  # fmt: skip
    assert [(one["user"], one["slurm_node"]) for one in labels("job_node")] == [
        ("alice", "n1"),
        ("alice", "n2"),
    ]
    (wait,) = [value for name, _, value in found if name == "ultracluster_slurm_pending_seconds"]
    assert 0 <= wait < 300, "a time of slurmctld, whatever the zone of this machine is"
    (since, _) = [
        value for name, _, value in found if name == "ultracluster_slurm_node_drained_timestamp_seconds"
    ]
    now = float(twin.run("date +%s").stdout)
    assert 0 <= now - since < 300


def test_a_file_counts_for_a_job_of_its_owner_on_this_node_only(twin: Twin) -> None:
    """slurmstepd of the job has a process of that user: no cgroup is needed to know it."""
    text = json.dumps({"version": 1, "training": {"step": 5}})
    twin.on(
        "n1",
        f"""mkdir -p /m && install -d -m 1777 /run/ultracluster/training
for who in alice.0 bob.1; do
  su ${{who%.*}} -s /bin/bash -c 'echo '"'"'{text}'"'"' >/run/ultracluster/training/1.'${{who#*.}}.json
done""",
    )

    found = told(twin, "n1", "training")

    assert [labels for name, labels, _ in found if name == "ultracluster_training_step"] == [
        {"job_id": "1", "rank": "0"}
    ]
    assert ("ultracluster_training_files_refused", {"reason": "no_job"}, 1.0) in found


@pytest.mark.parametrize("page", ["jobs", "nodes", "partitions", "scheduler"])
def test_slurmctld_exports_what_the_catalogue_names(twin: Twin, page: str) -> None:
    text = twin.run(f"curl --silent --fail http://$(hostname):6817/metrics/{page}").stdout
    found: dict[str, Any] = {}
    for name, labels, _ in series(text):
        found.setdefault(name, set()).update(labels)

    wanted = {one.name: set(one.labels) for one in metrics().values() if one.exporter == f"slurm/{page}"}
    assert {name: found.get(name) for name in wanted} == wanted


def test_a_slurmctld_that_is_gone_is_down(twin: Twin) -> None:
    twin.kill("slurmctld")
    try:
        assert told(twin, "controller", "slurm") == [("ultracluster_slurm_up", {}, 0.0)]
    finally:
        twin.start("slurmctld")

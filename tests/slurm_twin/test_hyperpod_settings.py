"""Settings of a HyperPod cluster, whose nodes fetch their configuration, with a real Slurm."""

from __future__ import annotations

import json

import pytest
from project import ROOT
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.slurm.configuration import slurm_configuration

DEV = slurm_configuration(resolve(load(ROOT / "environments" / "dev.yaml").environment), checks=True)
MARK = "/tmp/prolog"  # noqa: S108 - of a machine of the twin


@pytest.fixture(scope="module", params=["26.05", "24.11"])
def twin(request: pytest.FixtureRequest, machines: Machines) -> Twin:
    return machines(request.param, configless=True).fresh(generated=DEV)


def test_a_node_takes_jobs_before_our_scripts_have_put_a_prolog_there(twin: Twin) -> None:
    twin.run("srun --nodes=2 true", "alice")

    assert [twin.state(name).reason for name in ("n1", "n2")] == ["", ""]


def test_a_node_runs_the_prolog_that_our_scripts_put_there(twin: Twin) -> None:
    for name in ("n1", "n2"):
        twin.put(name, "/opt/ultracluster/prolog", f"#!/bin/sh\necho $SLURM_JOB_ID >>{MARK}\n", mode=0o755)
    twin.run("srun --nodes=2 true", "alice")

    assert [twin.on(name, f"wc -l <{MARK}").stdout.strip() for name in ("n1", "n2")] == ["1", "1"]


def test_the_controllers_program_adds_to_what_the_agent_wrote(twin: Twin) -> None:
    """As on a controller: slurm.conf is the agent's, and jobs that run stay.

    slurmctld looks ten seconds for the address of each node whose name it cannot find: a trial without
    the names of four nodes would be over before slurmctld answers, and nothing applied.
    """
    job = twin.submit("#!/bin/bash\nsleep 600\n", "-N1", user="alice")
    twin.wait(lambda: "RUNNING" in twin.job(job)["job_state"], "the job to run")
    settings = {"settings": [{"name": "KillWait", "value": "77"}], "default_partition": DEV.default_partition}
    twin.run(
        "mkdir -p /opt/slurm && ln -sfn /etc/slurm /opt/slurm/etc && mkdir -p /run/bin && "
        "printf '#!/bin/sh\\n[ \"$1\" = is-active ]\\n' >/run/bin/systemctl && "
        "chmod 755 /run/bin/systemctl && cat >/run/settings.json",
        stdin=json.dumps(settings),
    )
    program = "/opt/ultracluster/scripts/files/slurm_conf.py"

    done = twin.run(f"PATH=/run/bin:$PATH python3 -ISB {program} /run/settings.json", check=False)

    assert done.stdout == "Slurm's settings: applied\n", done
    assert "KillWait                = 77 sec" in twin.run("scontrol show config").stdout
    assert "RUNNING" in twin.job(job)["job_state"]
    twin.wait(
        lambda: "KillWait=77" in twin.on("n1", "cat /var/spool/slurmd*/conf-cache/ultracluster.conf").stdout,
        "the node to have the file",
    )

    bad = {"settings": [*settings["settings"], {"name": "PreemptMode", "value": "REQUEUE,NONE"}]}
    twin.run("cat >/run/settings.json", stdin=json.dumps(bad))
    done = twin.run(f"PATH=/run/bin:$PATH python3 -ISB {program} /run/settings.json", check=False)
    assert (done.returncode, done.stdout.partition(":")[2].strip().partition(":")[0]) == (1, "refused"), done
    assert "RUNNING" in twin.job(job)["job_state"]
    twin.run(f"scancel {job}")

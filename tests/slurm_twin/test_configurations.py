"""What is generated for the shipped environments, read by the Slurm of two releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from project import ROOT
from slurm_twin.configuration import Generated, NodeLine

from tests.slurm_twin.conftest import Machines
from ultracluster.catalog.slurm import slurm_settings
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.slurm.configuration import SlurmConfiguration, slurm_configuration

NEWER = {row.name: row.since for row in slurm_settings() if row.since}


def of(name: str) -> SlurmConfiguration | None:
    cluster = resolve(load(ROOT / "environments" / f"{name}.yaml").environment)
    return slurm_configuration(cluster, checks=True) if cluster.traits.scheduler == "slurm" else None


ALL: dict[str, SlurmConfiguration] = {
    file.stem: made for file in sorted((ROOT / "environments").glob("*.yaml")) if (made := of(file.stem))
}


@dataclass(frozen=True)
class KnownThere:
    """The configuration without what a release is too old for, whatever its cluster runs."""

    whole: SlurmConfiguration

    def lines(
        self, version: str | None = None, *, service: bool = False, accounting: bool = True
    ) -> list[str]:
        lines = self.whole.lines(version, service=service, accounting=accounting)
        return [line for line in lines if NEWER.get(line.partition("=")[0], "") <= (version or "")]

    @property
    def nodes(self) -> Mapping[str, NodeLine]:
        return self.whole.nodes

    @property
    def partitions(self) -> Mapping[str, Mapping[str, str]]:
        return self.whole.partitions

    @property
    def default_partition(self) -> str:
        return self.whole.default_partition


def test_every_orchestrator_with_slurm_is_shipped() -> None:
    assert {made.way for made in ALL.values()} == {"api", "file"}
    assert len(ALL) >= 6


def twice(name: str) -> bool:
    """Whether an environment before it has the same settings: its nodes and partitions are others."""
    before = [made for one, made in ALL.items() if one < name]
    return any(made.lines(service=True) == ALL[name].lines(service=True) for made in before)


@pytest.mark.parametrize("version", ["26.05", "24.11"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if twice(name) else []) for name in ALL]
)
def test_slurm_reads_it_and_runs_a_job(name: str, version: str, machines: Machines) -> None:
    made: Generated = KnownThere(ALL[name])
    twin = machines(version, configless=ALL[name].way == "file").fresh(generated=made)
    nodes = len(twin.nodes)
    settings = dict(line.split("=", 1) for line in made.lines(version, service=True))
    told = twin.run("scontrol show config").stdout
    known = dict(line.split(" = ", 1) for line in told.splitlines() if " = " in line)
    read = {key.strip().lower(): value.strip() for key, value in known.items()}
    assert read["jobrequeue"] == settings["JobRequeue"]
    assert set(settings["SchedulerParameters"].split(",")) <= set(read["schedulerparameters"].split(","))
    assert read["slurm_version"].startswith(version)

    done = twin.run(f"srun --nodes={nodes} bash -c 'echo $SLURM_JOB_PARTITION'", "alice")

    assert done.stdout.split() == [made.default_partition] * nodes
    assert "error" not in twin.run("grep -i 'error.*slurm.conf' /var/log/slurm/*.log", check=False).stdout

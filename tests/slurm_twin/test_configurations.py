"""What is generated for the shipped environments, read by the Slurm of two releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from project import ROOT
from slurm_twin.configuration import Generated, NodeLine
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import running
from ultracluster.catalog.slurm import slurm_settings
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.slurm.configuration import SlurmConfiguration, slurm_configuration

NEWER = {row.name: row.since for row in slurm_settings() if row.since}


def of(name: str) -> SlurmConfiguration | None:
    cluster = resolve(load(ROOT / "environments" / f"{name}.yaml").environment)
    return slurm_configuration(cluster, checks=True) if cluster.traits.scheduler == "slurm" else None


ALL = {file.stem: made for file in sorted((ROOT / "environments").glob("*.yaml")) if (made := of(file.stem))}


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


@pytest.mark.parametrize("version", ["26.05", "24.11"])
@pytest.mark.parametrize("name", ALL)
def test_slurm_reads_it_and_runs_a_job(name: str, version: str) -> None:
    made: Generated = KnownThere(ALL[name])
    with_database = version == "26.05"  # to start MariaDB once for each is enough
    settings = dict(
        line.split("=", 1) for line in made.lines(version, service=True, accounting=with_database)
    )
    for twin in running(Twin(2, generated=made, version=version, accounting=with_database)):
        told = twin.run("scontrol show config").stdout
        known = dict(line.split(" = ", 1) for line in told.splitlines() if " = " in line)
        read = {key.strip().lower(): value.strip() for key, value in known.items()}
        assert read["jobrequeue"] == settings["JobRequeue"]
        assert set(settings["SchedulerParameters"].split(",")) <= set(read["schedulerparameters"].split(","))
        assert read["slurm_version"].startswith(version)

        done = twin.run("srun --nodes=2 bash -c 'echo $SLURM_JOB_PARTITION'", "alice")

        assert done.stdout.split() == [made.default_partition] * 2
        assert "error" not in twin.run("grep -i 'error.*slurm.conf' /var/log/slurm/*.log", check=False).stdout

"""The facts of what Slurm's daemons refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from project import ROOT

from tools.slurm_keys import RELEASES, TABLE, written
from ultracluster.catalog.pcs import ConfigurationFile, SettingLevel, pcs_settings, pcs_slurm_versions
from ultracluster.catalog.slurm import (
    SettingFacts,
    cgroup_settings,
    hyperpod_slurm,
    hyperpod_slurm_versions,
    parallelcluster_slurm_version,
    service_settings,
    slurm_settings,
)
from ultracluster.catalog.slurm_refusals import (
    SlurmFile,
    slurm_defaults,
    slurm_file_refusals,
    slurm_keys,
    slurm_refusals,
    slurm_releases,
)

LEVELS: Mapping[SettingLevel | ConfigurationFile, SlurmFile] = {
    "cluster": "slurm.conf",
    "group": "NodeName",
    "partition": "PartitionName",
    "cgroup": "cgroup.conf",
    "slurmdbd": "slurmdbd.conf",
}
NEWEST = slurm_releases()[-1]


def test_the_table_is_in_the_form_of_its_tool() -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert text == written(json.loads(text))
    assert json.loads(text)["releases"] == RELEASES


def test_every_release_that_an_orchestrator_boots_is_known() -> None:
    booted = {*hyperpod_slurm_versions(), *pcs_slurm_versions()}
    booted |= {parallelcluster_slurm_version(release) for release in ("3.13.0", "3.14.0", "3.16.3")}
    assert booted <= set(slurm_releases())


@pytest.mark.parametrize("row", slurm_settings(), ids=lambda row: row.name)
def test_what_is_ours_is_read_from_the_release_on_that_the_facts_say(row: SettingFacts) -> None:
    key = slurm_keys("slurm.conf")[row.name.lower()]
    ours = {"ours", "keep"} & set(row.who.values())
    first = row.since or slurm_releases()[0]
    assert not ours or all(key.known_in(one) for one in slurm_releases() if one >= first)


def test_names_of_services_are_parameters() -> None:
    known = slurm_keys("slurm.conf").keys() | {"include"}
    assert {name.lower() for name in hyperpod_slurm().denied} <= known
    assert {row.name.lower() for row in cgroup_settings()} <= slurm_keys("cgroup.conf").keys()
    for level, file in LEVELS.items():
        names = {name.lower() for name in pcs_settings(level).names}
        assert names <= {name for name, key in slurm_keys(file).items() if key.known_in(NEWEST)}, level


def test_each_row_is_whole() -> None:
    for row in slurm_refusals():
        keys = slurm_keys(row.file)
        assert {name.lower() for name in (row.key, *row.bad)} <= keys.keys(), row
        assert all(name.lower() in keys for name, _, _ in row.conditions), row
        assert row.since in ("", *slurm_releases()) and row.until in ("", *slurm_releases()), row
        assert re.match(r"src/[\w/]+\.c, \w+$", row.source), row
        assert row.says and "\n" not in row.says, row


def test_each_file_is_whole() -> None:
    for row in slurm_file_refusals():
        assert row.since in ("", *slurm_releases())
        assert re.match(r"src/[\w/]+\.c, \w+$", row.source), row
        assert row.bad != row.good


def test_no_line_of_ours_in_a_plugstack_ends_slurmd() -> None:
    steps = (ROOT / "lifecycle_scripts" / "steps").glob("*.sh")
    lines = [line for file in steps for line in re.findall(r'echo "(\w+) \S*PYXIS_LINK"', file.read_text())]
    (row,) = [row for row in slurm_file_refusals() if row.file == "plugstack.conf"]
    assert lines == [row.good.split()[0]] != [row.bad.split()[0]]


def test_conditions_on_two_parameters_have_a_default() -> None:
    for row in slurm_refusals():
        asked = {name.lower() for name, _, _ in row.conditions} - {row.key.lower()}
        assert row.file != "slurm.conf" or asked <= slurm_defaults().keys(), row


def test_what_a_service_writes_is_read() -> None:
    facts = service_settings("parallelcluster")
    assert facts.complete
    assert {name.lower() for name in facts.settings} <= slurm_keys("slurm.conf").keys()
    assert not service_settings("pcs").complete

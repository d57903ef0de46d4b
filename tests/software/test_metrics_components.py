"""What collects metrics on Slurm nodes: asked for by `observability`, and never a reason to refuse a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.software import load_release, release_names
from ultracluster.software.first_boot import asked_components, first_boot, node_of
from ultracluster.software.fit import METRICS, Fit, fit
from ultracluster.software.lock import Release

ASKS = {"observability": {}}
EXPORTERS = {"node-exporter", "prometheus"}


def fits(name: str, changes: dict[str, Any]) -> dict[str, dict[str, Fit]]:
    environment = loaded(changed(environment_data(name), changes)).environment
    return {boot.group: {one.component: one for one in boot.fits} for boot in first_boot(environment)}


@pytest.mark.parametrize("name", ["dev", "parallelcluster-p5", "pcs-p6-b200"])
def test_every_node_gets_an_agent_and_gpu_nodes_an_exporter(name: str) -> None:
    environment = loaded(changed(environment_data(name), ASKS)).environment
    for boot in first_boot(environment):
        group = environment.node_groups[boot.group]
        found = {one.component for one in boot.fits if one.outcome == "installs"} & METRICS
        gpus = group.role == "compute" and node_of(environment, group).accelerator == "nvidia"
        assert found == (METRICS if gpus else EXPORTERS), boot.group


def test_without_it_nothing_is_installed() -> None:
    for one in fits("dev", {}).values():
        assert {one[name].outcome for name in METRICS} == {"not-needed"}


def test_other_collectors_and_pods_need_no_services_of_nodes() -> None:
    hyperpod = loaded(changed(environment_data("dev"), {"observability": {"kind": "cloudwatch"}})).environment
    assert asked_components(hyperpod) == frozenset()
    pods = loaded(changed(environment_data("eks-p5en"), ASKS)).environment
    assert asked_components(pods) == frozenset()


@pytest.mark.parametrize("strict", [False, True])
def test_an_exporter_without_a_digest_is_lacked_and_refuses_no_node(strict: bool) -> None:
    environment = loaded(changed(environment_data("dev"), ASKS)).environment
    release = unlocked(load_release(environment.software.release))
    for boot in first_boot(environment):
        node = replace(node_of(environment, environment.node_groups[boot.group]), strict=strict)
        for one in fit(boot.image, release, node):
            if one.component in EXPORTERS:
                assert (one.outcome, one.lack) == ("degraded", "unlocked"), (boot.group, one)


def unlocked(release: Release) -> Release:
    """The release as it would be if nobody recorded the digests of exporter and agent."""
    data = release.model_dump(mode="json", by_alias=True)
    for name in EXPORTERS:
        for artifact in data["components"][name]["artifacts"]:
            artifact |= {"sha256": None, "integrity": "to-be-locked"}
    return Release.model_validate(data)


def test_every_release_that_slurm_nodes_use_has_them() -> None:
    for name in release_names():
        release = load_release(name)
        slurm = bool({"hyperpod-slurm", "parallelcluster", "pcs"} & set(release.families))
        assert (release.components.keys() >= METRICS) is slurm, name

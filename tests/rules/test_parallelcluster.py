"""Rules on ParallelCluster, each broken and mended; what they know compared with the package's own limits."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from parallelcluster.cases import BASE, CAPACITY, CASES, GPU, TYPE
from parallelcluster.harness import package_limits
from rules_support import changed, environment_data, loaded
from rules_table import found, table_tests

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.parallelcluster import (
    DirectoryService,
    ParallelCluster,
    ParallelClusterMonitoring,
)
from ultracluster.model import resolve
from ultracluster.rules import check
from ultracluster.rules.parallelcluster import groups
from ultracluster.rules.sets import PCL

test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


def test_the_base_breaks_nothing() -> None:
    assert found(PCL, BASE) == []


def test_types_that_nobody_knows_are_left_to_others() -> None:
    assert found(PCL, {**BASE, TYPE: "p99.metal", CAPACITY: {"kind": "spot"}}) == []


def test_settings_and_groups_are_judged_without_a_file() -> None:
    settings = ParallelCluster(
        kind="parallelcluster",
        monitoring=ParallelClusterMonitoring(log_retention_days=100),
        directory_service=DirectoryService(
            domain_name="corp.example.com",
            domain_address="ldap://corp.example.com",
            password_secret_arn="arn:aws:secretsmanager:us-west-2:111122223333:secret:reader",  # noqa: S106
            read_only_user="cn=reader",
        ),
    )
    changes = {**BASE, "node_groups.GPU": GPU}
    group = resolve(loaded(changed(environment_data(), changes)).environment).groups["GPU"]

    assert [(one.code, one.dotted) for one in check(settings)] == [
        ("PCL064", "monitoring.log_retention_days"),
        ("PCL081", "directory_service.domain_address"),
    ]
    assert ("PCL010", (), "gpu") in [(one.code, one.path, one.instead) for one in check(group)]


def test_many_queues_warn_until_a_release_is_known_to_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of one partition are one queue; a release with a fix says nothing."""
    queues = {**BASE, **{f"node_groups.more{number}": GPU for number in range(40)}}
    together = {**BASE, **{f"node_groups.more{n}": {**GPU, "partition": "gpu"} for n in range(40)}}
    assert "PCL099" in [one.code for one in found(PCL, queues)]
    assert "PCL099" not in [one.code for one in found(PCL, together)]
    limits = parallelcluster()
    for fixed, warns in (("3.17.0", True), ("3.16.1", False)):
        many = replace(limits.many_queues, fixed_in=fixed)
        monkeypatch.setattr(groups, "parallelcluster", lambda many=many: replace(limits, many_queues=many))
        assert ("PCL099" in [one.code for one in found(PCL, queues)]) == warns, fixed


@pytest.mark.slow
def test_the_catalogue_has_the_limits_of_the_package() -> None:
    theirs, ours = package_limits(), parallelcluster()
    names = {key: getattr(ours.names, key) for key in theirs["names"]}
    gb200 = ours.families["p6e-gb200"]

    assert theirs["version"] in ours.checked_versions
    assert names == theirs["names"]
    assert ours.counts == theirs["counts"]
    assert ours.root_volume_gib(theirs["version"]) == theirs["root_volume_gib"]
    assert list(ours.log_retention_days) == theirs["log_retention_days"]
    assert ours.image_names == theirs["image_names"]
    assert sorted(ours.systems_without_image) == sorted(theirs["systems_without_image"])
    assert sorted(gb200.systems) == sorted(theirs["systems_of_gb200"])
    assert {"p6e-gb200": list(gb200.block_sizes)} == theirs["block_sizes"]
    assert sorted(ours.small_sizes["systems"]) == sorted(theirs["systems_without_small_sizes"])
    assert ours.reserved_tag_prefix == theirs["reserved_tag_prefix"]
    assert sorted(ours.reserved_mount_paths) == sorted(theirs["reserved_mount_paths"])
    assert sorted(ours.regions) == sorted(filter(None, theirs["regions"]))
    assert ours.sssd == theirs["sssd"]
    assert {
        level: sorted(name.lower() for name in settings) for level, settings in ours.slurm_settings.items()
    } == {level: sorted(names) for level, names in theirs["slurm_settings"].items()}


@pytest.mark.slow
def test_the_model_has_the_systems_of_the_package() -> None:
    systems = get_args(ParallelCluster.model_fields["os"].annotation)
    assert sorted(systems) == sorted(package_limits()["systems"])

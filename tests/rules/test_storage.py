"""Rules on FSx for Lustre and OpenZFS, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_support import findings
from rules_table import cases, found, table_tests

from ultracluster.catalog import region as catalogue_region
from ultracluster.catalog.fsx import lustre_deployments, openzfs_deployments
from ultracluster.rules.sets import FSX

L = "storage.lustre"
Z = "storage.openzfs"
TYPE = "node_groups.gpu.instance_type"
COUNT = "node_groups.gpu.count"

P2: dict[str, Any] = {
    "deployment": "persistent-2-ssd",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}
EFA = {**P2, "efa": True, "capacity_gib": 19200}
P1 = {**P2, "deployment": "persistent-1-ssd", "throughput_mbps_per_tib": 50}
HDD = {
    "deployment": "persistent-1-hdd",
    "capacity_gib": 6000,
    "throughput_mbps_per_tib": 12,
    "drive_cache": "none",
}
SCRATCH1 = {"deployment": "scratch-1", "capacity_gib": 1200}
SCRATCH2 = {"deployment": "scratch-2", "capacity_gib": 1200}
TIERING: dict[str, Any] = {
    "deployment": "intelligent-tiering",
    "throughput_mbps": 4000,
    "metadata_iops": 6000,
}
EXISTING = {
    "deployment": "existing",
    "id": "fs-0123456789abcdef0",
    "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    "mount_name": "abcdefgh",
    "security_group_id": "sg-0123456789abcdef0",
    "efa": True,
}
ZFS: dict[str, Any] = {
    "deployment": "single-az-ha-2",
    "capacity_gib": 64,
    "throughput_mbps": 160,
}
P5 = {"role": "compute", "instance_type": "p5.48xlarge", "count": 2, "partition": "p5"}
DECLARED = {
    "vcpu": 144,
    "memory_gib": 960,
    "accelerator": "NVIDIA GB300",
    "accelerators": 4,
    "network_gbps": 1600,
    "network_cards": 17,
    "efa_interfaces": 8,
    "addresses": 17,
    "source": "announcement of the type",
}


def made(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A change that sets the Lustre file system."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part
    return {L: merged | more}


def homes(**more: Any) -> dict[str, Any]:
    return {Z: ZFS | more}


FURTHER = "storage.further_lustre"


def beside(**further: Any) -> dict[str, Any]:
    return {FURTHER: further}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("storage"))


def codes(changes: dict[str, Any]) -> list[str]:
    return [one.code for one in found(FSX, changes)]


@pytest.mark.parametrize(
    "least",
    [made(P2), made(P1), made(HDD), made(SCRATCH1), made(SCRATCH2), made(EFA), homes()],
    ids=lambda change: next(iter(change.values()))["deployment"],
)
def test_the_smallest_file_system_of_each_kind_is_clean(least: dict[str, Any]) -> None:
    assert codes({**least, COUNT: 1}) == []  # FSX061 speaks of larger clusters


def test_a_linked_folder_has_a_longest_path() -> None:
    assert codes(made(P2, data_repositories={"/" + 4096 * "a": {}})) == ["FSX051"]
    assert codes(made(P2, data_repositories={"/" + 4095 * "a": {}})) == []


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "me-central-1", "mx-central-1"])
def test_the_name_of_a_zone_is_not_taken_for_a_local_zone(region: str) -> None:
    """Its form is reported by ENV003; which deployments it has depends on the Region alone."""
    home = catalogue_region(region)
    assert home
    at_id = {"region": region, "network.zone_id": f"{home.zone_prefix}-az1"}
    at_name = {"region": region, "network.zone_id": f"{region}a"}
    said = [[one.message for one in found(FSX, made(P2) | place)] for place in (at_id, at_name)]
    assert said[0] == said[1]


def test_no_file_system_is_clean() -> None:
    assert codes({L: ...}) == []


def test_an_unknown_tier_is_reported_alone() -> None:
    assert codes(made(HDD, throughput_mbps_per_tib=13, capacity_gib=7)) == ["FSX001"]
    assert codes(made(EFA, throughput_mbps_per_tib=333, capacity_gib=7)) == ["FSX001"]


def test_a_wrong_throughput_says_nothing_of_the_cache() -> None:
    wrong = made(TIERING, throughput_mbps=5000, read_cache={"mode": "sized", "gib": 1})
    assert codes({**wrong, TYPE: "m5.large"}) == ["FSX020"]


@pytest.mark.parametrize(
    ("base", "changes", "judged"),
    [
        ("dev", {}, True),
        ("hyperpod-eks-p5", {}, True),
        ("eks-p5en", {}, True),
        ("pcs-p6-b200", {}, True),
        ("dev", {"node_groups.gpu.image": "ami-0123456789abcdef0"}, True),  # its other groups have the image
        ("parallelcluster-p5", {"orchestrator.os": "ubuntu2404"}, True),
        ("parallelcluster-p5", {"orchestrator.os": "ubuntu2204"}, False),  # by its kernel, which is not known
        ("parallelcluster-p5", {"orchestrator.os": "rhel8"}, False),  # not in the catalogue of images
    ],
)
def test_the_client_is_that_of_the_image(base: str, changes: dict[str, Any], judged: bool) -> None:
    old = made(P1, version="2.10")
    found_here = [one for one in findings({**old, **changes}, base=base) if one.code == "FSX005"]
    assert bool(found_here) is judged
    assert all("HyperPod" not in one.message for one in found_here)
    after = findings({**made(P1, version="2.12"), **changes}, base=base)
    assert "FSX005" not in {one.code for one in after}


def test_a_version_is_reported_by_one_rule_only() -> None:
    assert codes(made(P2, version="2.10")) == ["FSX003"]


def test_unknown_types_are_not_judged() -> None:
    for changes in (made(EFA), made(EFA, gds=True)):
        assert codes({**changes, TYPE: "p99.metal"}) == []
    beside = {"node_groups.old.instance_type": "p99.metal"}
    other = {"node_groups.old": {**P5, "instance_type": "p99.metal", "partition": "old"}}
    assert codes({**made(EFA, gds=True), **other, **beside}) == []


def test_a_declared_type_is_taken_to_mount_over_efa() -> None:
    name = "p6e-gb300.36xlarge"
    declared = {"instance_types": {name: DECLARED}, TYPE: name}
    assert codes({**made(EFA, gds=True), **declared}) == []
    assert codes({**made(EFA), **declared, COUNT: 1025}) == ["FSX018"]


def test_a_small_file_system_is_not_told_to_use_efa() -> None:
    assert codes({**made(P2, capacity_gib=2400), TYPE: "p5.48xlarge", COUNT: 64}) == ["FSX061"]


def test_more_clients_than_connections_is_one_finding_on_efa() -> None:
    assert codes({**made(EFA), TYPE: "p5.48xlarge", COUNT: 2000}) == ["FSX018", "FSX061"]


def test_an_existing_file_system_without_efa_is_not_judged() -> None:
    assert codes({**made(EXISTING, efa=False), TYPE: "p5.48xlarge", COUNT: 2000}) == []


def test_every_neighbour_in_the_openzfs_region_table_is_offered() -> None:
    for deployment in openzfs_deployments().values():
        for region in deployment.regions_without:
            changes = {"region": region, **homes(deployment=deployment.name, throughput_mbps=640)}
            (hit,) = [one for one in found(FSX, changes) if one.code == "FSX042"]
            first = openzfs_deployments()[hit.remedy.options[0][0].value]
            assert region not in first.regions_without


@given(
    deployment=st.sampled_from(sorted(n for n, d in lustre_deployments().items() if d.capacities)),
    capacity=st.integers(min_value=1, max_value=100_800),
    tier=st.integers(min_value=0, max_value=3),
    efa=st.booleans(),
)
@settings(max_examples=examples(10), deadline=None)
def test_the_capacity_that_is_suggested_is_accepted(
    deployment: str, capacity: int, tier: int, efa: bool
) -> None:
    data: dict[str, Any] = {"deployment": deployment, "capacity_gib": capacity}
    throughput = lustre_deployments()[deployment].throughput
    if throughput:
        data["throughput_mbps_per_tib"] = throughput.first[tier % len(throughput.first)]
    if deployment == "persistent-1-hdd":
        data["drive_cache"] = "read"
    if deployment == "persistent-2-ssd":
        data["efa"] = efa
    wrong = [one for one in found(FSX, {L: data}) if one.code in ("FSX002", "FSX011")]
    for finding in wrong:
        for option in finding.remedy.options:
            more = {change.path[-1]: change.value for change in option}
            again = {one.code for one in found(FSX, {L: data | more})}
            assert not again & {"FSX002", "FSX011"}


def test_efa_is_not_advised_where_the_last_nodes_would_not_connect() -> None:
    large = {**made(P2, capacity_gib=19200), TYPE: "p5.48xlarge"}
    assert "FSX014" in {one.code for one in found(FSX, {**large, COUNT: 128})}
    assert "FSX014" not in {one.code for one in found(FSX, {**large, COUNT: 512})}

"""Rules on FSx for Lustre and OpenZFS, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_support import findings
from rules_table import Case, found, table_tests

from ultracluster.catalog import region as catalogue_region
from ultracluster.catalog.fsx import lustre_deployments, openzfs_deployments
from ultracluster.rules.sets import FSX

L = "storage.lustre"
Z = "storage.openzfs"
R = f"{L}.data_repositories"
TYPE = "node_groups.gpu.instance_type"
COUNT = "node_groups.gpu.count"

HOME: dict[str, Any] = {"deployment": "single-az-2", "capacity_gib": 512, "throughput_mbps": 160}
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


def linked(**folders: Any) -> dict[str, Any]:
    """A change that links folders: `linked(a={...})` links /a."""
    return made(P2, data_repositories={f"/{name}": link for name, link in folders.items()})


FILE_SYSTEM = [
    Case(
        "FSX001",
        made(P1, throughput_mbps_per_tib=125),
        f"{L}.throughput_mbps_per_tib",
        "persistent-1-ssd has the tiers 50, 100 or 200",
        "100 or 200; 125 needs deployment: persistent-2-ssd",
        made(P1, throughput_mbps_per_tib=200),
    ),
    Case(
        "FSX001",
        made(HDD, throughput_mbps_per_tib=50),
        f"{L}.throughput_mbps_per_tib",
        "persistent-1-hdd has the tiers 12 or 40",
        "throughput_mbps_per_tib: 40 and capacity_gib: 7200",
        made(HDD, throughput_mbps_per_tib=12),
    ),
    Case(
        "FSX002",
        made(P2, capacity_gib=5000),
        f"{L}.capacity_gib",
        "5000 GiB: storage comes in whole disks, and for persistent-2-ssd FSx takes 1200 or a "
        "multiple of 2400 GiB",
        "4800 or 7200",
        made(P2, capacity_gib=7200),
    ),
    Case(
        "FSX002",
        made(P2, capacity_gib=1000),
        f"{L}.capacity_gib",
        "1000 GiB",
        "1200",
        made(P2),
    ),
    Case(
        "FSX002",
        made(P1, capacity_gib=3600),
        f"{L}.capacity_gib",
        "for persistent-1-ssd",
        "2400 or 4800",
        made(P1, capacity_gib=4800),
    ),
    Case(
        "FSX002",
        made(SCRATCH2, capacity_gib=3600),
        f"{L}.capacity_gib",
        "1200 or a multiple of 2400",
        "2400 or 4800",
        made(SCRATCH2, capacity_gib=2400),
    ),
    Case(
        "FSX002",
        made(HDD, capacity_gib=7200),
        f"{L}.capacity_gib",
        "persistent-1-hdd at 12 MB/s per TiB FSx takes a multiple of 6000",
        "6000 or 12000",
        made(HDD, capacity_gib=7200, throughput_mbps_per_tib=40),
    ),
    Case(
        "FSX002",
        made(HDD, throughput_mbps_per_tib=40),
        f"{L}.capacity_gib",
        "a multiple of 1800",
        "5400 or 7200",
        made(HDD, throughput_mbps_per_tib=40, capacity_gib=5400),
    ),
    Case(
        "FSX003",
        made(P2, version="2.10"),
        f"{L}.version",
        "Lustre 2.10: persistent-2-ssd runs 2.12 or 2.15",
        '"2.15"',
        made(P2, version="2.15"),
    ),
    Case(
        "FSX006",
        made(P2, metadata_iops=9000),
        f"{L}.metadata_iops",
        "takes 1500, 3000, 6000 or a multiple of 12000 up to 192000",
        "metadata_iops: 6000 or 12000 or automatic",
        made(P2, metadata_iops=12000),
    ),
    Case(
        "FSX006",
        made(P2, metadata_iops=204000),
        f"{L}.metadata_iops",
        "204000 metadata IOPS",
        "metadata_iops: 192000 or automatic",
        made(P2, metadata_iops=192000),
    ),
    Case(
        "FSX007",
        made(P2, capacity_gib=103200),
        f"{L}.capacity_gib",
        "begins with 100800 GiB in a Region",
        "quota L-8F1B9C74",
        made(P2, capacity_gib=100800),
    ),
    Case(
        "FSX007",
        made(HDD, capacity_gib=108000),
        f"{L}.capacity_gib",
        "begins with 102000 GiB",
        "L-736F3D6F",
        made(HDD, capacity_gib=102000),
    ),
    Case(
        "FSX020",
        made(TIERING, throughput_mbps=2004000),
        f"{L}.throughput_mbps",
        "2004000 MB/s",
        "2000000",
        made(TIERING, throughput_mbps=2000000),
    ),
    Case(
        "FSX021",
        made(TIERING, read_cache={"mode": "sized"}),
        f"{L}.read_cache",
        "no size is given",
        "gib: 32, or mode: proportional",
        made(TIERING, read_cache={"mode": "sized", "gib": 32}),
    ),
    Case(
        "FSX022",
        made(TIERING, read_cache={"mode": "sized", "gib": 131073}),
        f"{L}.read_cache.gib",
        "takes 32 to 131072",
        "131072",
        made(TIERING, read_cache={"mode": "sized", "gib": 131072}),
    ),
    Case(
        "FSX030",
        made(P2, root_squash={"uid": 0, "gid": 65534}),
        f"{L}.root_squash.uid",
        "0:65534: zero is root itself",
        "uid: 65534",
        made(P2, root_squash={"uid": 65534, "gid": 65534}),
    ),
    Case(
        "FSX031",
        made(P2, root_squash={"uid": 1, "gid": 1, "exempt_clients": ["10.0.[10-2].1@tcp"]}),
        f"{L}.root_squash.exempt_clients[0]",
        "a number from 0 to 255 or a range in brackets",
        "10.0.[2-10].[1-255]@tcp",
        made(P2, root_squash={"uid": 1, "gid": 1, "exempt_clients": ["10.0.[2-10].[1-255]@tcp"]}),
    ),
    Case(
        "FSX031",
        made(P2, root_squash={"uid": 1, "gid": 1, "exempt_clients": ["10.0.0.256@tcp"]}),
        f"{L}.root_squash.exempt_clients[0]",
        "`10.0.0.256@tcp` is not a client",
        "@tcp",
        made(P2, root_squash={"uid": 1, "gid": 1, "exempt_clients": ["10.0.0.255@tcp"]}),
    ),
    Case(
        "FSX032",
        made(P2, backups={"start_time": "03:00"}),
        f"{L}.backups.start_time",
        "backups start at 03:00 and are kept for 0 days",
        "retention_days: 7, or remove start_time",
        made(P2, backups={"start_time": "03:00", "retention_days": 1}),
    ),
    Case(
        "FSX033",
        {"region": "us-gov-west-1", "network.zone_id": "usgw1-az1", **made(TIERING)},
        f"{L}.deployment",
        "AWS does not list intelligent-tiering for us-gov-west-1",
        "deployment: persistent-2-ssd and remove throughput_mbps and throughput_mbps_per_tib:",
        made(P2),
    ),
    Case(
        "FSX033",
        {"region": "me-south-1", "network.zone_id": "mes1-az1", **made(P2)},
        f"{L}.deployment",
        "AWS does not list persistent-2-ssd for me-south-1",
        "persistent-1-ssd",
        made(P1),
    ),
    Case(
        "FSX033",
        {"region": "us-east-1", "network.zone_id": "use1-atl2-az1", **made(P2, throughput_mbps_per_tib=500)},
        f"{L}.throughput_mbps_per_tib",
        "use1-atl2-az1 has persistent-2-ssd with 125 or 250 MB/s per TiB, not 500",
        "125 or 250",
        made(P2),
    ),
    Case(
        "FSX033",
        {"region": "us-east-1", "network.zone_id": "use1-dfw2-az1", **made(EFA)},
        f"{L}.efa",
        "use1-dfw2-az1 has persistent-2-ssd without EFA",
        "false",
        made(P2),
    ),
    Case(
        "FSX033",
        {"region": "us-east-1", "network.zone_id": "use1-bos1-az1", **made(P2)},
        f"{L}.deployment",
        "AWS does not list persistent-2-ssd for use1-bos1-az1",
        "a zone that the guide lists",
        {"network.zone_id": "use1-az4"},
    ),
    Case(
        "FSX040",
        homes(throughput_mbps=64),
        f"{Z}.throughput_mbps",
        "single-az-ha-2 has 160, 320, 640, 1280, 2560, 3840, 5120, 7680 or 10240",
        "160",
        homes(throughput_mbps=160),
    ),
    Case(
        "FSX041",
        homes(capacity_gib=600_000),
        f"{Z}.capacity_gib",
        "600000 GiB",
        "524288",
        homes(capacity_gib=524288),
    ),
    Case(
        "FSX043",
        {**homes(), "network.zone_id": "usw2-lax1-az1"},
        Z,
        "no page of AWS says whether usw2-lax1-az1 has FSx for OpenZFS",
        "remove openzfs",
        {"network.zone_id": "usw2-az2"},
    ),
]

CLIENTS = [
    Case(
        "FSX008",
        made(EXISTING, id="fs-0123456789abcdef1"),
        f"{L}.dns_name",
        "the name is that of fs-0123456789abcdef0",
        "fs-0123456789abcdef1.fsx.us-west-2.amazonaws.com",
        {f"{L}.dns_name": "fs-0123456789abcdef1.fsx.us-west-2.amazonaws.com"},
    ),
    Case(
        "FSX010",
        made(EFA, metadata_iops=None),
        f"{L}.metadata_iops",
        "refuses EFA on a file system without a metadata configuration",
        "metadata_iops: automatic",
        made(EFA, metadata_iops=1500),
    ),
    Case(
        "FSX011",
        made(EFA, capacity_gib=28800),
        f"{L}.capacity_gib",
        "FSx takes a multiple of 19200 GiB",
        "capacity_gib: 19200 or 38400, or throughput_mbps_per_tib: 500 or 1000",
        made(EFA, capacity_gib=28800, throughput_mbps_per_tib=500),
    ),
    Case(
        "FSX011",
        made(EFA, capacity_gib=19200, throughput_mbps_per_tib=125),
        f"{L}.capacity_gib",
        "a multiple of 38400",
        "38400",
        made(EFA, capacity_gib=38400, throughput_mbps_per_tib=125),
    ),
    Case(
        "FSX012",
        {**made(EFA), TYPE: "trn2.48xlarge"},
        f"{L}.efa",
        "of a family that FSx does not leave out",
        "a node group of such a type",
        {TYPE: "trn1.32xlarge"},
    ),
    Case(
        "FSX013",
        {**made(EXISTING), TYPE: "trn2.48xlarge", "node_groups.p5": P5},
        TYPE,
        "FSx leaves the trn2 family out",
        "acknowledge",
        {TYPE: "m5.large"},
    ),
    Case(
        "FSX014",
        made(P2, capacity_gib=19200),
        f"{L}.efa",
        "large enough for it, and gpu could use it",
        "efa: true",
        made(P2, capacity_gib=16800),
    ),
    Case(
        "FSX014",
        made(P2, capacity_gib=19200),
        f"{L}.efa",
        "and gpu could use it",
        "efa: true",
        {"region": "us-east-1", "network.zone_id": "use1-atl2-az1"},
    ),
    Case(
        "FSX014",
        made(TIERING),
        f"{L}.efa",
        "only at creation",
        "efa: true",
        {TYPE: "p4d.24xlarge"},
    ),
    Case(
        "FSX015",
        made(P2, gds=True),
        f"{L}.gds",
        "gds is on and efa is off",
        "gds: false",
        made(EFA, gds=True),
    ),
    Case(
        "FSX016",
        made(EFA, gds=True),
        f"{L}.gds",
        "the clients here are g6e.12xlarge",
        "gds: false",
        {TYPE: "p5.48xlarge"},
    ),
    Case(
        "FSX017",
        {**made(EFA), TYPE: "p5.48xlarge", COUNT: 129},
        f"{L}.efa",
        "1032 EFA connections: 129 x 8 of gpu",
        "or 2 file systems, each for `groups` of its own (storage.further_lustre)",
        {COUNT: 128},
    ),
    Case(
        "FSX017",
        {**made(EFA, efa_interfaces_per_client=2), TYPE: "p5.48xlarge", COUNT: 513},
        f"{L}.efa",
        "1026 EFA connections: 513 x 2 of gpu",
        "efa_interfaces_per_client: 1",
        {COUNT: 512},
    ),
    Case(
        "FSX083",
        {**made(EFA, efa_interfaces_per_client=4), TYPE: "p5.4xlarge"},
        f"{L}.efa_interfaces_per_client",
        "FSx's set-up binds fewer on the clients: p5.4xlarge (1)",
        "1",
        {**made(EFA, efa_interfaces_per_client=1), TYPE: "p5.4xlarge"},
    ),
    Case(
        "FSX083",
        {**made(P2, efa_interfaces_per_client=4)},
        f"{L}.efa_interfaces_per_client",
        "EFA is off",
        "remove",
        made(P2),
    ),
    Case(
        "FSX017",
        {**made(EXISTING), TYPE: "p5.48xlarge", COUNT: 127, "node_groups.p5": P5},
        f"{L}.efa",
        "127 x 8 of gpu + 2 x 8 of p5",
        "efa: false",
        {COUNT: 126},
    ),
]

FURTHER = "storage.further_lustre"
FAST = {**P2, "mount_path": "/fast"}


def beside(**further: Any) -> dict[str, Any]:
    return {FURTHER: further}


SEVERAL = [
    Case(
        "FSX017",
        {
            **made(EFA, groups=["gpu"]),
            **beside(fast={**EFA, "mount_path": "/fast", "groups": ["p5"]}),
            TYPE: "p5.48xlarge",
            COUNT: 128,
            "node_groups.p5": {**P5, "count": 129},
        },
        f"{FURTHER}.fast.efa",
        "1032 EFA connections: 129 x 8 of p5.",
        "efa: false",
        {"node_groups.p5.count": 128},
    ),
    Case(
        "FSX002",
        beside(fast={**FAST, "capacity_gib": 1300}),
        f"{FURTHER}.fast.capacity_gib",
        "1300 GiB: storage comes in whole disks",
        "1200 or 2400",
        {f"{FURTHER}.fast.capacity_gib": 2400},
    ),
]

DATA = {"bucket": "data"}
LINKS = [
    Case(
        "FSX052",
        made(P2, data_repositories={"/a": {"prefix": "a"}, "/a/b": {"prefix": "b"}}),
        f"{R}./a/b",
        "`/a/b` lies in `/a`",
        "a folder outside `/a`",
        made(P2, data_repositories={"/a": {"prefix": "a"}, "/ab": {"prefix": "b"}}),
    ),
    Case(
        "FSX052",
        made(P2, data_repositories={"/a": {"prefix": "a"}, "/a/": {"prefix": "b"}}),
        f"{R}./a/",
        "`/a/` lies in `/a`",
        "a folder outside",
        made(P2, data_repositories={"/a": {"prefix": "a"}}),
    ),
    Case(
        "FSX053",
        linked(a={**DATA, "prefix": "x"}, b={**DATA, "prefix": "x/y/"}),
        f"{R}./b.prefix",
        "`/b` and `/a` are linked to s3://data/x/y/ and s3://data/x/",
        "prefix: b/ in one and a/ in the other",
        linked(a={**DATA, "prefix": "x"}, b={**DATA, "prefix": "xy/"}),
    ),
    Case(
        "FSX053",
        linked(a=DATA, b={**DATA, "prefix": "y"}),
        f"{R}./b.prefix",
        "of which one holds the other",
        "in the other",
        linked(a={"bucket": "other"}, b={**DATA, "prefix": "y"}),
    ),
    Case(
        "FSX056",
        linked(a={"prefix": "s3://tokens/en/"}),
        f"{R}./a.prefix",
        "`s3://tokens/en/` is not the beginning of object keys",
        "bucket: tokens and prefix: en/",
        linked(a={"bucket": "tokens", "prefix": "en/"}),
    ),
    Case(
        "FSX081",
        made(P2, data_repositories={"/fsx/a": DATA}),
        f"{R}./fsx/a",
        "nodes would see this folder as /fsx/fsx/a",
        "/a",
        made(P2, data_repositories={"/a": DATA}),
    ),
    Case(
        "FSX081",
        made(P2, data_repositories={"/fsx": DATA}),
        f"{R}./fsx",
        "nodes would see this folder as /fsx/fsx",
        "a path from the root",
        made(P2, data_repositories={"/fsx2": DATA}),
    ),
    Case(
        "FSX070",
        {Z: {**HOME, "root_squash": {}}},
        f"{Z}.root_squash",
        "the image's users get no homes",
        "remove root_squash",
        {Z: {**HOME, "root_squash": {"exempt_clients": ["10.0.0.0/28"]}}},
    ),
]

CHECKPOINTS = [
    Case(
        "FSX061",
        {**made(SCRATCH2), TYPE: "p5.48xlarge"},
        L,
        "a checkpoint of 601 GB (a training state that fills half of the accelerator memory of gpu) takes 84 "
        "minutes at 120 MB/s; with one each 60 minutes, it should take at most 30",
        "capacity_gib: 4800",
        {**made(SCRATCH2, capacity_gib=4800)},
    ),
    Case(
        "FSX061",
        {**made(EFA, throughput_mbps_per_tib=250), TYPE: "p5.48xlarge", COUNT: 64},
        L,
        "19,241 GB",
        "throughput_mbps_per_tib: 1000",
        {COUNT: 20},
    ),
    Case(
        "FSX061",
        {**made(TIERING), TYPE: "p5.48xlarge", COUNT: 64},
        L,
        "at 4,000 MB/s",
        "throughput_mbps: 12000; or acknowledge it",
        {COUNT: 20},
    ),
    Case(
        "FSX061",  # the Local Zone has two tiers only
        {"storage.lustre.capacity_gib": 1200},
        L,
        "at 300 MB/s",
        "capacity_gib: 14400",
        {"storage.lustre.capacity_gib": 14400},
        base="parallelcluster-gb200",
    ),
]

CASES = FILE_SYSTEM + CLIENTS + SEVERAL + LINKS + CHECKPOINTS


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


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

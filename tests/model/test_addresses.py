"""How a VPC is cut, and who takes how many addresses of the node subnet."""

from __future__ import annotations

import copy
import re
from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_support import changed, environment_data, loaded
from rules_table import found

from ultracluster.catalog.address_ranges import free_block, refused_beside
from ultracluster.config import Environment
from ultracluster.config.network import Network
from ultracluster.model import resolve
from ultracluster.model.addresses import AddressBudget, Row, address_budget, subnets, subnets_of, vpc_blocks
from ultracluster.rules.sets import NET

DEV = environment_data()
DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}
P2 = {"deployment": "persistent-2-ssd"}
P2_250 = {**P2, "throughput_mbps_per_tib": 250}
P2_500 = {**P2, "throughput_mbps_per_tib": 500}
P1 = {"deployment": "persistent-1-ssd", "throughput_mbps_per_tib": 200}
HDD = {"deployment": "persistent-1-hdd", "throughput_mbps_per_tib": 40, "drive_cache": "none"}
TIERED = {"deployment": "intelligent-tiering", "metadata_iops": 6000}
EXISTING = {
    "deployment": "existing",
    "id": "fs-0123456789abcdef0",
    "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    "mount_name": "abcdefgh",
    "security_group_id": "sg-0123456789abcdef0",
}


def environment(changes: dict[str, Any]) -> Environment:
    return loaded(changed(DEV, copy.deepcopy(changes))).environment


def rows(changes: dict[str, Any]) -> dict[str, Row]:
    return {row.what: row for row in address_budget(resolve(environment(changes))).rows}


def test_the_budget_of_the_smallest_cluster() -> None:
    budget = address_budget(resolve(environment({})))
    assert [str(row) for row in budget.rows] == [
        "controller (m5.2xlarge): 1 x 1 = 1",
        "login (m5.xlarge): 1 x 1 = 1",
        "gpu (g6e.12xlarge): 2 x 1 = 2",
        "head-room for one replacement node: 1 x 1 = 1 (estimate)",
        "Lustre metadata servers: 1 x 1 = 1",
        "Lustre object servers: 1 x 1 = 1",
    ]
    assert (budget.total, budget.certain) == (7, 6)
    assert budget.network == IPv4Network("10.0.0.0/17")
    assert str(budget).startswith("7 of 32763 usable addresses in 10.0.0.0/17 (controller")


def test_p5_takes_what_aws_says() -> None:
    row = rows({"node_groups.gpu.instance_type": "p5.48xlarge"})["gpu (p5.48xlarge)"]
    assert (row.each, row.verified) == (32, True)


def test_other_types_are_estimates_and_one_address_is_certain() -> None:
    row = rows({"node_groups.gpu.instance_type": "p5en.48xlarge"})["gpu (p5en.48xlarge)"]
    assert (row.each, row.certain, row.verified) == (16, 1, False)
    assert str(row).endswith("(estimate)")


def test_what_efa_only_saves_is_not_guessed() -> None:
    changes = {
        "node_groups.gpu.instance_type": "p5.48xlarge",
        "node_groups.gpu.efa_interface": "efa-only",
    }
    row = rows(changes)["gpu (p5.48xlarge, fewer with efa-only)"]
    assert (row.each, row.verified) == (32, False)


def test_an_unknown_type_takes_one_and_a_declared_one_what_it_says() -> None:
    assert rows({"node_groups.gpu.instance_type": "p99.metal"})["gpu (p99.metal)"].each == 1
    declared = {
        "vcpu": 144, "memory_gib": 960, "accelerator": "NVIDIA GB300", "accelerators": 4,
        "network_gbps": 1600, "network_cards": 17, "efa_interfaces": 8, "addresses": 19,
        "source": "announcement of the type",
    }  # fmt: skip
    changes = {"node_groups.gpu.instance_type": "p6e-gb300.36xlarge"}
    data = changed(DEV, changes) | {"instance_types": {"p6e-gb300.36xlarge": declared}}
    budget = address_budget(resolve(loaded(data).environment))
    assert [row.each for row in budget.rows if row.what.startswith("gpu")] == [19]


def test_groups_without_nodes_take_nothing() -> None:
    assert not any(what.startswith("gpu") for what in rows({"node_groups.gpu.count": 0}))


def test_head_room_is_a_node_of_the_hungriest_type() -> None:
    row = rows({"node_groups.gpu.instance_type": "p5.48xlarge"})
    assert row["head-room for one replacement node"] == Row("head-room for one replacement node", 1, 32, 0)


@pytest.mark.parametrize(
    ("lustre", "metadata", "objects"),
    [
        ({"deployment": "scratch-2", "capacity_gib": 1200}, 1, 1),
        ({**P1, "capacity_gib": 2400}, 1, 1),
        ({**P1, "capacity_gib": 4800}, 1, 2),
        ({**HDD, "capacity_gib": 3600}, 1, 2),
        ({**P2_250, "capacity_gib": 24_000}, 1, 10),
        ({**P2_250, "capacity_gib": 48_000}, 2, 20),
        ({**P2_250, "capacity_gib": 4800, "metadata_iops": None}, 1, 2),
        ({**P2_500, "capacity_gib": 9600, "metadata_iops": 36_000}, 3, 4),
        ({**P2, "throughput_mbps_per_tib": 125, "capacity_gib": 76_800, "efa": True}, 4, 2),
        ({**P2_250, "capacity_gib": 38_400, "efa": True}, 1, 2),
        ({**P2_500, "capacity_gib": 9600, "efa": True}, 1, 1),
        ({**P2, "throughput_mbps_per_tib": 1000, "capacity_gib": 9600, "efa": True}, 1, 2),
        ({**TIERED, "throughput_mbps": 8000}, 1, 2),
    ],
)  # fmt: skip
def test_lustre_servers(lustre: dict[str, Any], metadata: int, objects: int) -> None:
    found_rows = rows({"storage.lustre": lustre})
    assert found_rows["Lustre metadata servers"].count == metadata
    assert found_rows["Lustre object servers"].count == objects


def test_a_file_system_made_elsewhere_takes_nothing_of_ours() -> None:
    assert not any(what.startswith("Lustre") for what in rows({"storage.lustre": EXISTING}))
    assert not any(what.startswith("Lustre") for what in rows({"storage.lustre": ...}))


@pytest.mark.parametrize(
    ("deployment", "servers", "verified"), [("single-az-2", 1, True), ("single-az-ha-2", 2, False)]
)
def test_openzfs_servers(deployment: str, servers: int, verified: bool) -> None:
    openzfs = {"deployment": deployment, "capacity_gib": 64, "throughput_mbps": 160}
    row = rows({"storage.openzfs": openzfs})["OpenZFS file servers"]
    assert (row.total, row.verified) == (servers, verified)


def test_how_the_default_network_is_cut() -> None:
    cut = subnets(resolve(environment({"storage.accounting_database": DATABASE})))
    assert str(cut.nodes) == "10.0.0.0/17"
    assert [str(small) for small in cut.small] == [
        "10.0.255.240/28", "10.0.255.224/28", "10.0.255.208/28",
    ]  # fmt: skip
    closed = subnets(resolve(environment({"network.egress": "closed"})))
    assert (closed.public, closed.database) == (None, None)


def test_a_vpc_made_elsewhere_is_not_cut() -> None:
    vpc = {"id": "vpc-01234567", "cidr": "10.8.0.0/16"}
    cut = subnets(resolve(environment({"network.vpc": vpc, "storage.accounting_database": DATABASE})))
    assert (str(cut.nodes), cut.small) == ("10.8.0.0/17", ())


def test_the_share_of_a_subnet_without_usable_addresses_is_infinite() -> None:
    budget = AddressBudget(IPv4Network("10.0.0.0/30"), (Row("nodes", 1, 1, 1),))
    assert budget.usable == 0
    assert budget.share > 1


networks = st.builds(
    lambda address, prefix: IPv4Network((address & ~(2 ** (32 - prefix) - 1), prefix)),
    st.integers(0, 2**32 - 1),
    st.integers(1, 32),
)
egress = st.sampled_from(["nat", "closed"])
databases = st.sampled_from([DATABASE, ...])


@settings(deadline=None)
@given(whole=networks, egress=egress, database=databases)
def test_subnets_never_overlap_and_lie_within_the_vpc(whole: IPv4Network, egress: str, database: Any) -> None:
    changes = {
        "network.cidr": str(whole),
        "network.egress": egress,
        "storage.accounting_database": database,
    }
    cut = subnets(resolve(environment(changes)))  # of any size: it must not raise
    if 16 <= whole.prefixlen <= 25:
        every = (cut.nodes, *cut.small)
        assert not any(one.overlaps(other) for one, other in combinations(every, 2))
        assert all(one.subnet_of(whole) and 16 <= one.prefixlen <= 28 for one in every)
        assert {one.code for one in found(NET, changes)}.isdisjoint({"NET001", "NET004"})


@settings(deadline=None)
@given(counts=st.lists(st.integers(0, 6758), min_size=2, max_size=2), egress=egress)
def test_the_cut_does_not_depend_on_node_counts(counts: list[int], egress: str) -> None:
    cuts = [
        subnets(resolve(environment({"node_groups.gpu.count": count, "network.egress": egress})))
        for count in counts
    ]
    assert cuts[0] == cuts[1]


@settings(deadline=None)
@given(
    count=st.integers(1, 6758),
    name=st.sampled_from(["p5.48xlarge", "p6-b200.48xlarge", "g6e.12xlarge"]),
    prefix=st.integers(17, 27),
    own=st.booleans(),
)
def test_what_is_suggested_instead_works(count: int, name: str, prefix: int, own: bool) -> None:
    """Whoever writes the suggested network is rid of the finding and gets no new one."""
    changes: dict[str, Any] = {
        "node_groups.gpu.instance_type": name,
        "node_groups.gpu.count": count,
        "network.cidr": f"10.0.0.0/{prefix - 1}",
    }
    if own:
        changes["network.node_cidr"] = f"10.0.0.0/{prefix}"
    budget = {"NET005", "NET006", "NET007"}
    full = [one for one in found(NET, changes) if one.code in budget]
    assert len(full) <= 1
    for one in full:
        suggested = dict(re.findall(r"(cidr|node_cidr): (\S+)", one.instead))
        if not suggested:
            assert "fewer nodes" in one.instead or "a whole /" in one.instead
            continue
        changes |= {f"network.{key}": cidr for key, cidr in suggested.items()}
        rest = [one for one in found(NET, changes) if "/16 (" not in one.message]
        assert rest == [], "the largest subnet may be 80 % full; any other has a larger one"


@settings(deadline=None)
@given(
    kind=st.sampled_from(["hyperpod-slurm", "hyperpod-eks", "parallelcluster", "pcs", "eks"]),
    name=st.sampled_from(["p5.48xlarge", "p6-b200.48xlarge", "trn2.48xlarge"]),
    count=st.integers(1, 4000),
)
def test_a_whole_block_holds_what_the_default_subnet_does_not(kind: str, name: str, count: int) -> None:
    """At 1 to 4,000 nodes: more take more, and the remedy is a block that EC2 takes beside the VPC."""
    changes = {
        "orchestrator": {"kind": kind},
        "node_groups.gpu.instance_type": name,
        "node_groups.gpu.count": count,
    }
    usual = address_budget(resolve(environment(changes)))
    fewer = address_budget(resolve(environment({**changes, "node_groups.gpu.count": count - 1})))
    wide = environment({**changes, "network.node_cidr": "10.1.0.0/16"})
    whole, block = vpc_blocks(wide.network)
    cut, budget = subnets(resolve(wide)), address_budget(resolve(wide))
    assert (str(whole), str(block), cut.nodes) == ("10.0.0.0/16", "10.1.0.0/16", block)
    assert all(one.subnet_of(whole) for one in cut.small)
    assert fewer.total < usual.total == budget.total
    assert budget.usable == 65_531 > 2 * usual.usable
    full = [one for one in found(NET, changes) if one.code in {"NET005", "NET006", "NET007"}]
    assert bool(full) == (usual.share >= 0.8)
    if full and (budget.share < 0.8 or usual.share > 1 >= budget.share):
        assert [one.instead for one in full] == ["node_cidr: 10.1.0.0/16"]
    elif full:
        assert "fewer nodes" in full[0].instead


ranges = st.sampled_from(["10.0.0.0/16", "10.1.0.0/16", "10.7.0.0/20", "172.20.0.0/16", "172.31.0.0/16"])
others = st.sampled_from(
    ["192.168.0.0/16", "192.168.64.0/18", "100.64.0.0/16", "198.19.0.0/16", "8.8.0.0/16"]
)


@given(first=ranges | others, prefix=st.integers(16, 28))
def test_a_free_block_is_one_that_ec2_takes(first: str, prefix: int) -> None:
    whole = IPv4Network(first)
    block = free_block((whole,), prefix)
    assert block and block.prefixlen == prefix
    assert not block.overlaps(whole)
    assert refused_beside(block, (whole,)) is None


P5 = {"node_groups.gpu.instance_type": "p5.48xlarge"}


@pytest.mark.parametrize(
    ("orchestrator", "changes", "each", "certain"),
    [
        ({"kind": "hyperpod-slurm"}, {}, 32, 32),
        ({"kind": "hyperpod-eks"}, {}, 81, 81),
        ({"kind": "parallelcluster"}, {}, 1, 1),
        ({"kind": "parallelcluster", "efa_interface": "efa"}, {}, 32, 32),
        ({"kind": "pcs"}, {}, 32, 32),
        ({"kind": "pcs", "efa_interface": "efa-only"}, {}, 1, 1),
        ({"kind": "pcs"}, {"node_groups.gpu.instance_type": "p6-b300.48xlarge"}, 17, 17),
        ({"kind": "eks"}, {}, 50, 1),
        ({"kind": "eks"}, {"node_groups.gpu.efa_interface": "efa"}, 50, 32),
        ({"kind": "pcs"}, {"node_groups.gpu.instance_type": "p9.48xlarge"}, 1, 1),
    ],
    ids=str,
)
def test_addresses_of_a_node_follow_its_orchestrator(
    orchestrator: dict[str, str], changes: dict[str, Any], each: int, certain: int
) -> None:
    found_rows = rows({"orchestrator": orchestrator, **P5, **changes})
    row = next(row for what, row in found_rows.items() if what.startswith("gpu "))
    assert (row.each, row.certain) == (each, certain)


def test_nodes_that_may_come_are_counted() -> None:
    found_rows = rows({"orchestrator": {"kind": "pcs"}, "node_groups.gpu.max_count": 5})
    assert next(row.count for what, row in found_rows.items() if what.startswith("gpu ")) == 5


@pytest.mark.parametrize("database", [True, False])
@pytest.mark.parametrize("node_cidr", ["10.0.128.0/17", "10.0.192.0/18", "10.0.255.0/24"])
def test_small_subnets_make_room_for_a_node_subnet_at_the_end(node_cidr: str, database: bool) -> None:
    network = Network(zone_id="use2-az1", node_cidr=node_cidr)
    made = subnets_of(network, database=database, control_plane=True)

    everything = [made.nodes, *made.small]
    assert str(made.nodes) == node_cidr
    assert all(one.subnet_of(IPv4Network("10.0.0.0/16")) for one in everything)
    assert not any(a.overlaps(b) for i, a in enumerate(everything) for b in everything[i + 1 :])


def test_small_subnets_stay_where_they_are_as_long_as_there_is_room() -> None:
    """Their networks cannot change later."""
    for node_cidr in (None, "10.0.0.0/17", "10.0.128.0/18"):
        made = subnets_of(Network(zone_id="use2-az1", node_cidr=node_cidr), control_plane=True)
        assert str(made.public) == "10.0.255.240/28"

"""Node groups of PCS: network cards, capacity, placement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pcs_support import (
    BLOCK,
    ID,
    bare,
    compute,
    group_of,
    login,
    template_of,
)
from templates import Synthesised

from ultracluster.catalog import instance_types
from ultracluster.config.capacity import Capacity, OnDemand, Reservation, Spot
from ultracluster.config.pcs import Pcs

EFA_TYPES = {name: known for name, known in instance_types().items() if known.efa_interfaces != 0}


@pytest.fixture(scope="module")
def every_efa_type(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A group of each EFA type; more than PCS makes, but no test of CloudFormation's."""
    groups = {
        logical(name): compute(name, capacity=BLOCK if known.ultraserver else OnDemand())
        for name, known in EFA_TYPES.items()
    }
    return bare(tmp_path_factory.mktemp("types"), node_groups=groups)


def logical(name: str) -> str:
    return "t" + name.replace(".", "").replace("-", "")


@pytest.mark.parametrize("name", EFA_TYPES)
def test_each_efa_type_has_all_its_efas(name: str, every_efa_type: Synthesised) -> None:
    """`efa`, as PCS's guide has it; on p6e-gb200 alone EC2 takes `efa-only`."""
    known = EFA_TYPES[name]
    interfaces = template_of(every_efa_type, logical(name))["NetworkInterfaces"]
    kinds = [one["InterfaceType"] for one in interfaces]
    cards = [one["NetworkCardIndex"] for one in interfaces if one["InterfaceType"] != "interface"]
    ultraserver = bool(known.ultraserver and known.efa_interfaces is None)

    assert kinds.count("efa-only" if ultraserver else "efa") == (
        known.recommended_efa_interfaces[0] if ultraserver else known.efa_interfaces
    )
    assert len(set(cards)) == len(cards), "one EFA on a card at most"
    assert (0 in cards) == known.efa_on_card_0
    assert (interfaces[0]["NetworkCardIndex"], interfaces[0]["DeviceIndex"]) == (0, 0)
    assert kinds[0] != "efa-only"


def test_every_interface_has_the_group_and_the_template_has_none_beside(every_efa_type: Synthesised) -> None:
    for name in EFA_TYPES:
        data = template_of(every_efa_type, logical(name))
        assert "SecurityGroupIds" not in data
        assert len({json.dumps(one["Groups"]) for one in data["NetworkInterfaces"]}) == 1
        assert all("SubnetId" not in one for one in data["NetworkInterfaces"])


def test_efa_only_where_it_is_asked_for_and_none_on_login_nodes(tmp_path: Path) -> None:
    result = bare(
        tmp_path,
        config=Pcs(kind="pcs", efa_interface="efa-only"),
        node_groups={
            "login": login().model_copy(update={"instance_type": "g6e.12xlarge"}),
            "train": compute(),
        },
    )

    kinds = [one["InterfaceType"] for one in template_of(result, "train")["NetworkInterfaces"]]
    assert kinds == ["interface", *["efa-only"] * 32]
    assert len(template_of(result, "login")["NetworkInterfaces"]) == 1


RESERVED = {"kind": "reservation", "id": ID}


@pytest.mark.parametrize(
    ("capacity", "placed", "purchase", "market", "target"),
    [
        (OnDemand(), True, "ONDEMAND", None, None),
        (Spot(kind="spot", allocation="capacity-optimized"), True, "SPOT", None, None),
        (Reservation(kind="reservation", id=ID), False, "ONDEMAND", None, ID),
        (Reservation(kind="reservation"), False, "ONDEMAND", None, "open"),
        (BLOCK, False, "CAPACITY_BLOCK", "capacity-block", ID),
        (
            Reservation(kind="reservation", id=ID, interruptible=True),
            False,
            "INTERRUPTIBLE_CAPACITY_RESERVATION",
            "interruptible-capacity-reservation",
            ID,
        ),
    ],
    ids=["on-demand", "spot", "reservation", "open reservation", "block", "interruptible reservation"],
)
def test_a_placement_group_never_beside_a_reservation_or_block(
    capacity: Capacity, placed: bool, purchase: str, market: str | None, target: str | None, tmp_path: Path
) -> None:
    """Instances in a group do not match what was reserved outside it (awslabs/awsome-distributed-ai#353)."""
    result = bare(tmp_path, node_groups={"train": compute(capacity=capacity)})
    data, group = template_of(result, "train"), group_of(result, "train")
    groups = result.resources("AWS::EC2::PlacementGroup")
    reserved = data.get("CapacityReservationSpecification", {})

    assert len(groups) == placed
    assert ("Placement" in data) == placed
    assert group["PurchaseOption"] == purchase
    assert data.get("InstanceMarketOptions", {}).get("MarketType") == market
    assert data["InstanceType"] == "p5.48xlarge"
    if target == "open":
        assert reserved == {"CapacityReservationPreference": "open"}
    else:
        found = reserved.get("CapacityReservationTarget", {}).get("CapacityReservationId")
        assert found == target
    if isinstance(capacity, Spot):
        assert group["SpotOptions"] == {"AllocationStrategy": "capacity-optimized"}
    else:
        assert "SpotOptions" not in group


def test_a_placement_group_can_be_declined(tmp_path: Path) -> None:
    result = bare(tmp_path, node_groups={"train": compute(capacity=OnDemand(), placement_group="none")})

    assert not result.resources("AWS::EC2::PlacementGroup")
    assert "Placement" not in template_of(result, "train")


def test_a_reservation_made_in_a_group_is_launched_into_that_very_group(tmp_path: Path) -> None:
    reserved = Reservation(kind="reservation", id=ID, placement_group="theirs")
    result = bare(tmp_path, node_groups={"train": compute(capacity=reserved)})

    assert template_of(result, "train")["Placement"] == {"GroupName": "theirs"}
    assert not result.resources("AWS::EC2::PlacementGroup")


def test_nodes_that_train_together_share_a_group_and_others_do_not(tmp_path: Path) -> None:
    groups = {
        "first": compute(),
        "second": compute(),
        "other": compute("p4d.24xlarge", partition="other"),
        "plain": compute("m7i.2xlarge", partition="plain"),
    }
    result = bare(tmp_path, node_groups=groups)
    placed = {name: template_of(result, name).get("Placement") for name in groups}

    assert placed["first"] == placed["second"] != placed["other"]
    assert placed["plain"] is None
    assert len(result.resources("AWS::EC2::PlacementGroup")) == 2

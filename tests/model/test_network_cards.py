"""The network-card plan against the published layouts, EC2's own answers, and its invariants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import for_each

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import InstanceType, instance_type, instance_types
from ultracluster.config.instance_types import made_from
from ultracluster.config.nodes import DeclaredInstanceType
from ultracluster.model.network_cards import (
    EfaKind,
    NetworkInterface,
    network_card_plan,
    takes_combined_efa,
)

GB200 = "p6e-gb200.36xlarge"
ENA = (0, 0, "interface")

# EFAs by type: EfaInfo.MaximumEfaInterfaces; all on card 0 and on those that follow.
FROM_CARD_0 = {
    "p4d.24xlarge": 4, "p4de.24xlarge": 4, "p5.4xlarge": 1, "p5.48xlarge": 32, "p5e.48xlarge": 32,
    "p5en.48xlarge": 16, "p6-b200.48xlarge": 8,
    "trn1.32xlarge": 8, "trn1n.32xlarge": 16, "trn2.3xlarge": 1, "trn2.48xlarge": 16, "trn2u.48xlarge": 16,
    "g4dn.8xlarge": 1, "g4dn.12xlarge": 1, "g4dn.16xlarge": 1,
    "g5.8xlarge": 1, "g5.12xlarge": 1, "g5.16xlarge": 1, "g5.24xlarge": 1, "g5.48xlarge": 1,
    "g6.8xlarge": 1, "g6.12xlarge": 1, "g6.16xlarge": 1, "g6.24xlarge": 1, "g6.48xlarge": 1, "gr6.8xlarge": 1,
    "g6e.8xlarge": 1, "g6e.12xlarge": 1, "g6e.16xlarge": 1, "g6e.24xlarge": 2, "g6e.48xlarge": 4,
    "g7.8xlarge": 1, "g7.12xlarge": 1, "g7.24xlarge": 1, "g7.48xlarge": 2,
    "g7e.8xlarge": 1, "g7e.12xlarge": 1, "g7e.24xlarge": 2, "g7e.48xlarge": 4,
    "c5n.9xlarge": 1, "c5n.18xlarge": 1, "c6a.48xlarge": 1, "c6i.32xlarge": 1, "c7g.16xlarge": 1,
    "c8g.24xlarge": 1, "c8g.48xlarge": 1, "i3en.12xlarge": 1, "i3en.24xlarge": 1, "m6a.48xlarge": 1,
    "m6i.32xlarge": 1, "m7g.16xlarge": 1, "m7i.48xlarge": 1, "m8g.24xlarge": 1, "m8g.48xlarge": 1,
    "r6i.32xlarge": 1, "r7i.48xlarge": 1,
}  # fmt: skip
WITHOUT_CARD_0 = {"p6-b300.48xlarge": tuple(range(1, 17)), GB200: (1, 5, 9, 13)}


def known(name: str) -> InstanceType:
    found = instance_type(name)
    assert found
    return found


def shape(plan: tuple[NetworkInterface, ...]) -> list[tuple[int, int, str]]:
    return [(one.card, one.device, one.kind) for one in plan]


EFA_TYPES = [name for name, t in instance_types().items() if t.efa_interfaces != 0]
TYPES = st.sampled_from(list(instance_types().values()))
KINDS: st.SearchStrategy[EfaKind] = st.sampled_from(["efa-only", "efa"])


def test_the_table_below_knows_every_efa_type_of_the_catalogue() -> None:
    assert sorted(FROM_CARD_0 | WITHOUT_CARD_0) == sorted(EFA_TYPES)


@pytest.mark.parametrize(("name", "count"), FROM_CARD_0.items())
def test_efa_on_card_0_is_device_1_beside_ena_and_device_0_elsewhere(name: str, count: int) -> None:
    plan = network_card_plan(known(name))

    assert shape(plan) == [ENA, (0, 1, "efa-only"), *((card, 0, "efa-only") for card in range(1, count))]
    assert count == known(name).efa_interfaces


@pytest.mark.parametrize(("name", "cards"), WITHOUT_CARD_0.items())
def test_where_card_0_has_no_efa_it_carries_ena_alone(name: str, cards: tuple[int, ...]) -> None:
    assert shape(network_card_plan(known(name))) == [ENA, *((card, 0, "efa-only") for card in cards)]


@pytest.mark.parametrize(
    ("interfaces", "cards", "gbps"), [(4, (1, 5, 9, 13), 400), (8, (1, 3, 5, 7, 9, 11, 13, 15), 200)]
)
def test_gb200_has_two_layouts(interfaces: int, cards: tuple[int, ...], gbps: float) -> None:
    ena, *efas = network_card_plan(known(GB200), interfaces=interfaces)

    assert (ena.card, ena.device, ena.kind, ena.gbps) == (0, 0, "interface", 100)
    assert [(one.card, one.device, one.gbps) for one in efas] == [(card, 0, gbps) for card in cards]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # the AWS PCS templates of awslabs/awsome-distributed-ai
        ("p5.48xlarge", [(0, 0, "efa"), *((card, 1, "efa") for card in range(1, 32))]),
        ("p6-b200.48xlarge", [(0, 0, "efa"), *((card, 1, "efa") for card in range(1, 8))]),
        ("p6-b300.48xlarge", [ENA, *((card, 0, "efa") for card in range(1, 17))]),
        ("g6e.12xlarge", [(0, 0, "efa")]),
    ],
)
def test_the_layout_of_combined_interfaces(name: str, expected: list[tuple[int, int, str]]) -> None:
    assert shape(network_card_plan(known(name), efa="efa")) == expected


@pytest.mark.parametrize(
    ("name", "both", "combined"),
    [
        # interfaces that aws-parallelcluster 3.16.1 emits, with efa-only and with EfaInterfaceType: efa
        ("p4d.24xlarge", 5, 4),
        ("p5.48xlarge", 33, 32),
        ("p5en.48xlarge", 17, 16),
        ("p6-b200.48xlarge", 9, 8),
        ("p6-b300.48xlarge", 17, 17),
    ],
)
def test_totals_are_those_of_parallelcluster(name: str, both: int, combined: int) -> None:
    assert len(network_card_plan(known(name))) == both
    assert len(network_card_plan(known(name), efa="efa")) == combined


@pytest.mark.parametrize(
    ("name", "gbps"),
    [("p5.48xlarge", 100), ("p5en.48xlarge", 200), ("p6-b200.48xlarge", 400), ("p6-b300.48xlarge", 400),
     ("p4d.24xlarge", 100), ("g6e.48xlarge", 100), ("g7.48xlarge", 350), ("trn2.48xlarge", 200)],
)  # fmt: skip
def test_an_efa_has_its_share_of_the_published_total(name: str, gbps: float) -> None:
    plan = network_card_plan(known(name))

    assert {one.gbps for one in plan[1:]} == {gbps}
    assert sum(one.gbps or 0 for one in plan[1:]) == known(name).network_gbps


@for_each("kind", ["efa-only", "efa"])
@for_each("name", [name for name in EFA_TYPES if name in authorities.api()])
def test_ec2_says_of_each_card_that_it_takes_the_interface(name: str, kind: EfaKind) -> None:
    """EC2's own DescribeInstanceTypes answer, as moto ships it, not our catalogue."""
    answer = authorities.api()[name]["NetworkInfo"]
    cards = {card["NetworkCardIndex"]: card for card in answer["NetworkCards"]}
    plan = network_card_plan(known(name), efa=kind)

    for one in plan:
        assert one.device < cards[one.card]["MaximumNetworkInterfaces"]
        assert one.kind in cards[one.card].get("InterfaceTypes", [one.kind])
    assert sum(one.kind != "interface" for one in plan) == answer["EfaInfo"]["MaximumEfaInterfaces"]
    assert len(plan) <= answer["MaximumNetworkInterfaces"]


@given(TYPES, KINDS, st.none() | st.integers(-2, 40))
def test_every_plan_is_one_that_ec2_can_take(t: InstanceType, kind: EfaKind, interfaces: int | None) -> None:
    too_many = interfaces is not None and interfaces not in numbers(t)
    if too_many or (kind == "efa" and t.name == GB200 and interfaces != 0):
        with pytest.raises(ValueError, match=t.name):
            network_card_plan(t, efa=kind, interfaces=interfaces)
        return
    plan = network_card_plan(t, efa=kind, interfaces=interfaces)
    efas = [one for one in plan if one.kind != "interface"]
    most = t.efa_interfaces if t.efa_interfaces is not None else max(t.recommended_efa_interfaces)

    assert (plan[0].card, plan[0].device) == (0, 0)
    assert plan[0].kind != "efa-only"
    assert len({one.card for one in efas}) == len(efas) <= most
    assert len({(one.card, one.device) for one in plan}) == len(plan)
    assert {one.kind for one in efas} <= {kind}
    assert {one.card for one in efas} <= set(t.efa_cards)
    assert not any(one.card == 0 and one.kind != "interface" for one in plan) or t.efa_on_card_0
    assert all(one.device < slots(t, one.card) for one in plan)
    if interfaces is None:
        assert len(efas) == (t.efa_interfaces if t.efa_interfaces is not None else 4)
    else:
        assert len(efas) == interfaces


def numbers(t: InstanceType) -> Iterable[int]:
    """How many EFAs a node of the type can have."""
    return (0, *t.recommended_efa_interfaces) if t.efa_interfaces is None else range(t.efa_interfaces + 1)


def slots(t: InstanceType, card: int) -> int:
    for row in t.network_cards_api:
        if row.first <= card <= row.last:
            return row.interfaces
    return t.network_interfaces_per_card or 1


def test_a_type_without_efa_has_one_interface() -> None:
    assert shape(network_card_plan(known("m5.4xlarge"))) == [ENA]
    with pytest.raises(ValueError, match=r"interfaces must be 0 to 0 on m5\.4xlarge, got 1"):
        network_card_plan(known("m5.4xlarge"), interfaces=1)


@pytest.mark.parametrize("name", ["p5.48xlarge", GB200])
def test_no_efa_when_none_is_asked_for(name: str) -> None:
    assert shape(network_card_plan(known(name), interfaces=0)) == [ENA]


def test_fewer_efas_are_the_first_ones() -> None:
    plan = network_card_plan(known("p5.48xlarge"), interfaces=3)

    assert shape(plan) == [ENA, (0, 1, "efa-only"), (1, 0, "efa-only"), (2, 0, "efa-only")]
    assert plan[1].gbps == 100


@pytest.mark.parametrize(
    ("t", "arguments", "message"),
    [
        (known("p5.48xlarge"), {"interfaces": 33}, r"interfaces must be 0 to 32 on p5\.48xlarge, got 33"),
        (known("p5.48xlarge"), {"interfaces": -1}, r"interfaces must be 0 to 32 on p5\.48xlarge, got -1"),
        (known(GB200), {"interfaces": 6}, r"interfaces must be 4 or 8 on p6e-gb200\.36xlarge, got 6"),
        (known(GB200), {"efa": "efa"}, r"only efa-only interfaces .*; pass efa='efa-only'"),
        (InstanceType(name="p9.48xlarge"), {}, r"p9\.48xlarge is unknown \(efa_interfaces, EfaInfo"),
        (InstanceType(name="p9.48xlarge", efa_interfaces=8), {}, r"\(efa_cards, NetworkInfo.*8 EFAs, 0 c"),
        (replace(known("p5.48xlarge"), efa_only=False), {}, r"not known to take efa-only.*pass efa='efa'"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_named(
    t: InstanceType, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        network_card_plan(t, **arguments)  # pyright: ignore[reportArgumentType]


def test_a_declared_type_says_what_its_declaration_lacks() -> None:
    declared = DeclaredInstanceType(
        vcpu=144, memory_gib=960, accelerator="NVIDIA GB300", accelerators=4, network_gbps=3200,
        network_cards=17, efa_interfaces=16, addresses=17, source="AWS announcement of 2026",
    )  # fmt: skip
    with pytest.raises(
        ValueError, match=r"which network cards of p6e-gb300\.36xlarge take an EFA is unknown"
    ):
        network_card_plan(made_from("p6e-gb300.36xlarge", declared))


def test_only_gb200_refuses_combined_interfaces() -> None:
    assert [name for name in EFA_TYPES if not takes_combined_efa(known(name))] == [GB200]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["network_cards", "capacity"])
def test_rules_and_commands_can_ask_without_the_cdk(module: str) -> None:
    code = f"import sys, ultracluster.model.{module}; sys.exit('aws_cdk' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

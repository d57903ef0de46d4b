"""The decision table in full, its agreement with the rules, and what launch templates make of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rows import for_each
from rules_support import findings

from ultracluster.catalog import InstanceType, instance_type, instance_types
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.model import capacity as module
from ultracluster.model.capacity import (
    Capacity,
    CapacityForm,
    Decision,
    Launcher,
    MarketOptions,
    PlacementKind,
    capacity_form,
    decide,
    market_options,
    placement_for,
)

pytestmark = pytest.mark.slow

TABLE = json.loads(Path(module.__file__).with_suffix(".json").read_text())
AXES: Mapping[str, list[Any]] = TABLE["axes"]
ROWS: list[dict[str, Any]] = TABLE["decisions"]

ID = "cr-0123456789abcdef0"
GROUP = "arn:aws:resource-groups:us-east-2:111122223333:group/blocks"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/large"
CAPACITIES: dict[CapacityForm, Capacity] = {
    "on-demand": OnDemand(),
    "spot": Spot(kind="spot"),
    "reservation-open": Reservation(kind="reservation"),
    "reservation-id": Reservation(kind="reservation", id=ID),
    "reservation-resource-group": Reservation(kind="reservation", resource_group_arn=GROUP),
    "reservation-interruptible": Reservation(kind="reservation", id=ID, interruptible=True),
    "capacity-block": CapacityBlock(kind="capacity-block", id=ID),
    "training-plan": TrainingPlan(kind="training-plan", arn=PLAN),
}
IN_GROUP = Reservation(kind="reservation", id=ID, placement_group="theirs")
HYPERPOD: list[Launcher] = ["hyperpod-slurm", "hyperpod-eks"]
OTHERS: list[Launcher] = ["parallelcluster", "pcs", "eks", "ec2"]
PLACEMENTS: list[PlacementKind] = ["none", "cluster", "reservation-group"]
CAN_BE_UNSOLD = ("on-demand", "spot", "training-plan", "capacity-block")


def known(name: str) -> InstanceType:
    found = instance_type(name)
    assert found
    return found


def type_for(fabric: str, *, sold: bool) -> InstanceType:
    """A type on that fabric for which AWS sells everything, or nothing but reservations."""
    base = {"none": "m5.4xlarge", "efa": "p5.48xlarge", "ultraserver": "p6e-gb200.36xlarge"}[fabric]
    regions = ("us-east-2",) if sold else ()
    return replace(
        known(base),
        on_demand=sold,
        spot=sold,
        training_plan=sold,
        capacity_block_regions=regions,
        hyperpod_regions=regions,
    )


# One line for each form of capacity; three groups for the placements none, cluster and the reservation's own;
# in each group types without EFA, with EFA, of UltraServers. o legal, x refused, ? refused by the catalogue.
EXPECTED = {
    ("hyperpod", "sold"): """
        on-demand                   oo? xxx xxx
        reservation-open            xxx xxx xxx
        reservation-id              xxx xxx xxx
        reservation-resource-group  xxx xxx xxx
        reservation-interruptible   xxx xxx xxx
        capacity-block              xxx xxx xxx
        training-plan               ooo xxx xxx
    """,
    ("hyperpod-slurm", "sold"): """
        spot                        ??? xxx xxx
    """,
    ("hyperpod-eks", "sold"): """
        spot                        ooo xxx xxx
    """,
    ("hyperpod", "unsold"): """
        on-demand                   ??? xxx xxx
        spot                        ??? xxx xxx
        capacity-block              xxx xxx xxx
        training-plan               ??? xxx xxx
    """,
    ("others", "sold"): """
        on-demand                   oox oox xxx
        spot                        oox oox xxx
        reservation-open            oox xxx oox
        reservation-id              oox xxx oox
        reservation-resource-group  oox xxx oox
        capacity-block              ooo xxx xxx
        training-plan               xxx xxx xxx
    """,
    ("pcs and ec2", "sold"): """
        reservation-interruptible   oox xxx oox
    """,
    ("parallelcluster", "sold"): """
        reservation-interruptible   xxx xxx xxx
    """,
    ("eks", "sold"): """
        reservation-interruptible   ??x xxx ??x
    """,
    ("others", "unsold"): """
        on-demand                   ??x ??x xxx
        spot                        ??x ??x xxx
        capacity-block              ??? xxx xxx
        training-plan               xxx xxx xxx
    """,
}
VERDICTS = {"o": None, "x": "error", "?": "warning"}
LAUNCHERS: Mapping[str, list[Launcher]] = {
    "hyperpod": HYPERPOD,
    "hyperpod-slurm": ["hyperpod-slurm"],
    "hyperpod-eks": ["hyperpod-eks"],
    "others": OTHERS,
    "pcs and ec2": ["pcs", "ec2"],
    "parallelcluster": ["parallelcluster"],
    "eks": ["eks"],
}


def cells() -> list[Any]:
    found: list[Any] = []
    for (launchers, sold), text in EXPECTED.items():
        for line in filter(str.strip, text.splitlines()):
            form, *groups = line.split()
            for placement, letters in zip(PLACEMENTS, groups, strict=True):
                for fabric, letter in zip(AXES["fabric"], letters, strict=True):
                    found += [
                        (form, launcher, placement, fabric, sold == "sold", VERDICTS[letter])
                        for launcher in LAUNCHERS[launchers]
                    ]
    return found


@for_each(("form", "launcher", "placement", "fabric", "sold", "severity"), cells())
def test_each_cell(
    form: CapacityForm,
    launcher: Launcher,
    placement: PlacementKind,
    fabric: str,
    sold: bool,
    severity: str | None,
) -> None:
    t = type_for(fabric, sold=sold)
    decision = decide(CAPACITIES[form], orchestrator=launcher, placement=placement, instance_type=t)

    assert decision.severity == severity
    assert decision.legal == (severity is None)
    assert bool(decision.instead) == (severity is not None)
    assert decision.source
    assert "$" not in decision.message


def combinations() -> list[tuple[str, str, str, str, bool]]:
    every = product(AXES["capacity"], AXES["orchestrator"], AXES["placement"], AXES["fabric"], (True, False))
    return [cell for cell in every if cell[4] or cell[0] in CAN_BE_UNSOLD]


def test_the_cells_above_are_all_there_are() -> None:
    assert sorted(cell[:5] for cell in cells()) == sorted(combinations())
    assert list(CAPACITIES) == AXES["capacity"]
    assert AXES["orchestrator"] == HYPERPOD + OTHERS
    assert AXES["placement"] == PLACEMENTS


def test_every_combination_has_exactly_one_decision_and_no_decision_is_idle() -> None:
    idle = {row["id"] for row in ROWS}
    for form, launcher, placement, fabric, sold in combinations():
        cell = {"capacity": form, "orchestrator": launcher, "placement": placement, "fabric": fabric}
        hits = [
            row["id"]
            for row in ROWS
            if row.get("sold", sold) == sold
            and all(value in row.get(axis, [value]) for axis, value in cell.items())
        ]
        assert len(hits) == 1, (cell, sold, hits)
        idle -= set(hits)
    assert idle == set()


def test_the_table_uses_no_value_and_no_key_that_nothing_reads() -> None:
    keys = {"id", "verdict", "rule", "reason", "instead", "source", "sold", *AXES}
    for row in ROWS:
        assert set(row) <= keys, row["id"]
        assert row["verdict"] in ("legal", "error", "warning")
        for axis, values in AXES.items():
            assert set(row.get(axis, [])) <= set(values), row["id"]
    assert len({row["id"] for row in ROWS}) == len(ROWS)


def test_messages_name_type_and_reservation() -> None:
    block = decide(
        CAPACITIES["capacity-block"],
        orchestrator="eks",
        placement="cluster",
        instance_type=known("p5.48xlarge"),
    )
    plan = decide(
        CAPACITIES["training-plan"],
        orchestrator="pcs",
        placement="none",
        instance_type=known("p5.48xlarge"),
    )

    assert ID in block.message
    assert block.message.endswith("Instead: no placement group.")
    assert "pcs launches from EC2" in plan.message
    assert "p5e" not in plan.message


@pytest.mark.parametrize(
    ("name", "on_ec2", "on_hyperpod"),
    [
        ("p5.48xlarge", True, True),
        ("p5e.48xlarge", False, False),  # HyperPod has no price of it, either
        ("trn2.48xlarge", False, True),
        ("trn2.3xlarge", False, True),
        ("trn2u.48xlarge", False, False),
        ("p6e-gb200.36xlarge", False, False),
        ("m5.4xlarge", True, True),
    ],
)
def test_what_is_sold_on_demand(name: str, on_ec2: bool, on_hyperpod: bool) -> None:
    """An on-demand price of EC2 proves nothing of HyperPod, which has its own."""
    t = known(name)

    assert module.sold("on-demand", t) is on_ec2
    assert {module.sold("on-demand", t, orchestrator=one) for one in OTHERS} == {on_ec2}
    assert {module.sold("on-demand", t, orchestrator=one) for one in HYPERPOD} == {on_hyperpod}


def test_what_nobody_has_looked_up_may_be_sold() -> None:
    t = replace(known("p5.48xlarge"), on_demand=None, hyperpod_regions=())

    assert all(module.sold("on-demand", t, orchestrator=one) for one in HYPERPOD + OTHERS)


def test_an_acknowledged_warning_asks_for_that_capacity() -> None:
    """Left out, the field would mean on demand."""
    t = type_for("efa", sold=False)
    spot = decide(CAPACITIES["spot"], orchestrator="pcs", placement="none", instance_type=t)
    block = decide(CAPACITIES["capacity-block"], orchestrator="eks", placement="none", instance_type=t)

    assert (spot.severity, spot.purchase) == ("warning", "SPOT")
    assert (block.severity, block.purchase) == ("warning", "CAPACITY_BLOCK")


@pytest.mark.parametrize(
    ("launcher", "form", "purchase"),
    [
        ("hyperpod-slurm", "spot", "Spot"),
        ("hyperpod-eks", "training-plan", "TrainingPlanArn"),
        ("parallelcluster", "on-demand", "ONDEMAND"),
        ("parallelcluster", "reservation-id", "ONDEMAND"),
        ("pcs", "capacity-block", "CAPACITY_BLOCK"),
        ("pcs", "spot", "SPOT"),
        ("eks", "reservation-resource-group", "ON_DEMAND"),
        ("ec2", "capacity-block", "capacity-block"),
        ("ec2", "reservation-open", ""),
        ("pcs", "reservation-interruptible", "INTERRUPTIBLE_CAPACITY_RESERVATION"),
        ("ec2", "reservation-interruptible", "interruptible-capacity-reservation"),
        ("eks", "reservation-interruptible", "ON_DEMAND"),
        ("eks", "training-plan", ""),
    ],
)
def test_what_the_orchestrators_own_field_is_set_to(
    launcher: Launcher, form: CapacityForm, purchase: str
) -> None:
    t = type_for("efa", sold=True)
    decision = decide(CAPACITIES[form], orchestrator=launcher, placement="none", instance_type=t)

    assert decision.purchase == purchase


RULES_OF_CAPACITY = {f"HYP{number:03d}" for number in range(20, 27)} | {
    "GRP020",
    "GRP021",
    "GRP023",
    "GRP070",
}
BASES = {
    "hyperpod-slurm": ("dev", "gpu"),
    "hyperpod-eks": ("hyperpod-eks-p5", "train"),
    "parallelcluster": ("parallelcluster-p5", "more"),
    "pcs": ("pcs-p6-b200", "train"),
    "eks": ("eks-p5en", "train"),
}
"""A shipped environment of each orchestrator, and its compute group."""
JUDGED_TYPES = [
    "p5.48xlarge", "g6e.12xlarge", "m5.4xlarge", "p6e-gb200.36xlarge", "trn2.48xlarge", "p5e.48xlarge",
]  # fmt: skip


@for_each("name", JUDGED_TYPES)
@for_each("form", [*CAPACITIES, "reservation in a group"])
@for_each("launcher", BASES)
def test_rules_say_what_the_table_says(launcher: Any, form: Any, name: str) -> None:
    """Of a compute group with continuous provisioning; roles and provisioning are the rules' own subject."""
    in_group = form not in CAPACITIES
    capacity = IN_GROUP if in_group else CAPACITIES[form]
    base, group = BASES[launcher]
    changes = {
        f"node_groups.{group}.instance_type": name,
        f"node_groups.{group}.capacity": capacity.model_dump(exclude_none=True),
    }
    said = {
        (f.code, f.severity, f.message if f.code.startswith("GRP") else "")
        for f in findings(changes, base=base)
        if f.code in RULES_OF_CAPACITY
    }
    t, kind = known(name), "none"
    if launcher not in HYPERPOD:
        kind = "reservation-group" if in_group else placement_for(capacity, instance_type=t).kind
    decision = decide(capacity, orchestrator=launcher, placement=kind, instance_type=t)

    # HyperPod's rules have words of their own, with the zone in them
    words = decision.reason if decision.rule.startswith("GRP") else ""
    assert said == ({(decision.rule, decision.severity, words)} if not decision.legal else set())


def any_placement_is_legal(capacity: Capacity, launcher: Launcher, t: InstanceType) -> bool:
    return any(
        decide(capacity, orchestrator=launcher, placement=placement, instance_type=t).legal
        for placement in PLACEMENTS
    )


@pytest.mark.parametrize("launcher", HYPERPOD + OTHERS)
@pytest.mark.parametrize("form", CAPACITIES)
def test_the_placement_that_fits_is_legal_wherever_any_is(form: CapacityForm, launcher: Launcher) -> None:
    capacity = CAPACITIES[form]
    for t in instance_types().values():
        chosen = placement_for(capacity, instance_type=t, orchestrator=launcher)
        decision = decide(capacity, orchestrator=launcher, placement=chosen.kind, instance_type=t)
        assert decision.legal == any_placement_is_legal(capacity, launcher, t), t.name
        assert (chosen.reason, chosen.source) == (decision.reason, decision.source)


@pytest.mark.parametrize(
    ("form", "name", "launcher", "kind"),
    [
        ("on-demand", "p5.48xlarge", "eks", "cluster"),
        ("spot", "g6e.12xlarge", "pcs", "cluster"),
        ("on-demand", "m5.4xlarge", "eks", "none"),
        ("on-demand", "p5.48xlarge", "hyperpod-slurm", "none"),
        ("reservation-open", "p5.48xlarge", "eks", "none"),
        ("reservation-id", "p5.48xlarge", "parallelcluster", "none"),
        ("reservation-resource-group", "p5.48xlarge", "pcs", "none"),
        ("capacity-block", "p5.48xlarge", "eks", "none"),
        ("capacity-block", "p6e-gb200.36xlarge", "pcs", "none"),
        ("training-plan", "p5.48xlarge", "hyperpod-eks", "none"),
    ],
)
def test_when_there_must_be_no_group(
    form: CapacityForm, name: str, launcher: Launcher, kind: PlacementKind
) -> None:
    chosen = placement_for(CAPACITIES[form], instance_type=known(name), orchestrator=launcher)

    assert chosen.kind == kind
    assert chosen.reason


def test_a_reservation_made_in_a_group_is_launched_into_it() -> None:
    p5 = known("p5.48xlarge")
    chosen = placement_for(CAPACITIES["reservation-id"], instance_type=p5, reserved_in_group=True)

    assert chosen.kind == "reservation-group"
    with pytest.raises(ValueError, match="goes with a reservation, not with capacity-block"):
        placement_for(CAPACITIES["capacity-block"], instance_type=p5, reserved_in_group=True)
    with pytest.raises(ValueError, match="HyperPod has no field for a placement group"):
        placement_for(
            CAPACITIES["reservation-id"],
            instance_type=p5,
            orchestrator="hyperpod-slurm",
            reserved_in_group=True,
        )


@pytest.mark.parametrize(
    ("form", "launcher", "expected"),
    [
        ("on-demand", "ec2", MarketOptions()),
        ("spot", "ec2", MarketOptions(market_type="spot")),
        ("spot", "eks", MarketOptions()),
        ("spot", "pcs", MarketOptions()),
        ("reservation-open", "eks", MarketOptions(preference="open")),
        ("reservation-id", "eks", MarketOptions(reservation_id=ID)),
        ("reservation-resource-group", "pcs", MarketOptions(resource_group_arn=GROUP)),
        (
            "reservation-interruptible",
            "pcs",
            MarketOptions(market_type="interruptible-capacity-reservation", reservation_id=ID),
        ),
        ("capacity-block", "eks", MarketOptions(market_type="capacity-block", reservation_id=ID)),
        ("capacity-block", "ec2", MarketOptions(market_type="capacity-block", reservation_id=ID)),
    ],
)
def test_what_a_launch_template_says(form: CapacityForm, launcher: Launcher, expected: MarketOptions) -> None:
    assert market_options(CAPACITIES[form], orchestrator=launcher) == expected


@pytest.mark.parametrize(("form", "launcher"), [("training-plan", "ec2"), ("on-demand", "hyperpod-eks")])
def test_hyperpod_takes_no_launch_template(form: CapacityForm, launcher: Launcher) -> None:
    with pytest.raises(ValueError, match="no launch template"):
        market_options(CAPACITIES[form], orchestrator=launcher)


def test_a_reservation_is_targeted_in_one_way() -> None:
    both = Reservation(kind="reservation", id=ID, resource_group_arn=GROUP)
    for ask in (
        lambda: capacity_form(both),
        lambda: market_options(both),
        lambda: decide(both, orchestrator="eks", placement="none", instance_type=known("p5.48xlarge")),
    ):
        with pytest.raises(ValueError, match=r"by id .* or by resource group .*, not by both"):
            ask()


def test_an_interruptible_reservation_is_launched_into_by_its_id_only() -> None:
    with pytest.raises(ValueError, match="targeted by its id"):
        market_options(Reservation(kind="reservation", interruptible=True), orchestrator="pcs")


def test_a_decision_can_be_read() -> None:
    decision = decide(OnDemand(), orchestrator="pcs", placement="cluster", instance_type=known("p5.48xlarge"))

    assert isinstance(decision, Decision)
    assert decision.message == decision.reason
    assert decision.id == "efa-in-cluster-group"


@pytest.mark.parametrize(
    ("kind", "asked", "nodes", "days"),
    [
        ("capacity-block", (1, 1), 1, 1),
        ("capacity-block", (3, 14), 4, 14),
        ("capacity-block", (12, 15), 16, 21),
        ("capacity-block", (64, 177), 64, 182),
        ("capacity-block", (65, 999), 64, 182),
        ("training-plan", (33, 15), 64, 15),
        ("training-plan", (9, 0), 16, 1),
        ("training-plan", (2, 300), 2, 182),
    ],
)
def test_what_is_sold_is_the_nearest_that_is_enough(
    kind: Any, asked: tuple[int, int], nodes: int, days: int
) -> None:
    assert (module.sold_nodes(kind, asked[0]), module.sold_days(kind, asked[1])) == (nodes, days)
    assert module.weeks_ahead() == 8

"""The gates: each has a source, none is beyond physics, and what is not verified never gates."""

from __future__ import annotations

import json
import re

import pytest
from project import ROOT

from ultracluster.acceptance.curves import Gate, ceiling, figures, gates
from ultracluster.catalog import instance_type, instance_types

DOCUMENT = json.loads((ROOT / "constructs/ultracluster/catalog/nccl_curves.json").read_text())
GATES = pytest.mark.parametrize("gate", gates(), ids=lambda gate: f"{gate.type}-{gate.scope}")
NODES = {"single": 1, "two nodes": 2, "fabric": 4}


@GATES
def test_a_gate_has_a_source(gate: Gate) -> None:
    assert gate.published.verified
    assert gate.published.kind in ("measured", "threshold")
    assert gate.published.source
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", gate.published.date)


@GATES
def test_a_gate_is_the_agreed_share_of_a_figure_of_its_kind(gate: Gate) -> None:
    published = gate.published
    assert published.busbw is not None

    if published.kind == "threshold":
        assert gate.busbw <= published.busbw
    else:
        assert gate.busbw == pytest.approx(DOCUMENT["share"] * published.busbw, rel=0.025)
    assert published.nodes == NODES[gate.scope]
    assert published.size is None or published.size <= gate.min_size


@GATES
def test_no_gate_is_above_what_the_interfaces_carry(gate: Gate) -> None:
    kind = instance_type(gate.type)
    assert kind and kind.accelerator
    nodes = NODES[gate.scope]
    limit = ceiling(gate.type, nodes, nodes * kind.accelerator.count, ring=False)

    assert (limit is None) == (gate.scope == "single")
    assert limit is None or gate.busbw < limit


def test_what_is_not_verified_never_gates() -> None:
    doubtful = {figure.id for figure in figures() if not figure.verified}

    assert doubtful
    assert not doubtful & {gate.published.id for gate in gates()}


def test_figures_on_two_nodes_gate_only_where_nothing_else_exists() -> None:
    assert {gate.type for gate in gates() if gate.scope == "two nodes"} == {"p4d.24xlarge", "p4de.24xlarge"}


def test_one_gate_per_type_and_kind_of_run() -> None:
    assert len({(gate.type, gate.scope) for gate in gates()}) == len(gates())


def test_the_agreed_gates() -> None:
    found = {(gate.type.split(".")[0], gate.scope): gate.busbw for gate in gates()}

    assert found == {
        ("p4d", "two nodes"): 65,
        ("p4de", "two nodes"): 65,
        ("p5", "single"): 410,
        ("p5", "fabric"): 300,
        ("p5e", "single"): 410,
        ("p5en", "single"): 410,
        ("p5en", "fabric"): 310,
        ("p6-b200", "single"): 715,
        ("p6-b200", "fabric"): 320,
    }


def test_every_figure_is_of_a_type_of_the_catalogue() -> None:
    assert {figure.type for figure in figures()} <= set(instance_types())


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("p4d.24xlarge", 50),
        ("p5.48xlarge", 400),
        ("p5en.48xlarge", 400),
        ("p6-b200.48xlarge", 400),
        ("p6-b300.48xlarge", 800),
        ("p5.4xlarge", None),  # one GPU, which no NVSwitch joins to another
        ("p6e-gb200.36xlarge", None),  # NVLink joins its instances
        ("g6e.48xlarge", None),
    ],
)
def test_a_ring_cannot_pass_the_line_rate(name: str, rate: float | None) -> None:
    """EC2 User Guide, network bandwidth of accelerated instance types, in GB/s."""
    assert ceiling(name, 4, 32, ring=True) == rate


def test_two_nodes_have_a_gate_where_the_catalogue_says_so() -> None:
    judged = {kind.name for kind in instance_types().values() if kind.nccl_two_nodes_judged}
    assert {gate.type for gate in gates() if gate.scope == "two nodes"} == judged


def test_a_message_fits_into_the_memory_of_an_accelerator() -> None:
    """nccl-tests keeps three buffers of it."""
    for kind in instance_types().values():
        if kind.accelerator and kind.largest_message_gib:
            assert 3 * kind.largest_message_gib < kind.accelerator.memory_gib / kind.accelerator.count, (
                kind.name
            )
    for figure in figures():
        largest = instance_types()[figure.type].largest_message_gib
        assert largest
        assert (figure.size or 0) <= largest * 2**30, figure.id


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("p4d.24xlarge", "SENDRECV"),
        ("p4de.24xlarge", "SENDRECV"),
        ("p5.4xlarge", "SENDRECV"),
        ("p5.48xlarge", "RDMA"),
        ("p5e.48xlarge", "RDMA"),
        ("p5en.48xlarge", "RDMA"),
        ("p6-b200.48xlarge", "RDMA"),
        ("p6-b300.48xlarge", "RDMA"),
        ("p6e-gb200.36xlarge", "RDMA"),
        ("g7e.8xlarge", "SENDRECV"),
        ("g7e.48xlarge", "RDMA"),
        ("g6.48xlarge", None),
    ],
)
def test_the_protocol_of_a_type(name: str, protocol: str | None) -> None:
    assert instance_types()[name].nccl_protocol == protocol

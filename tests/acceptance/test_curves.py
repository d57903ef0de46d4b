"""The gates: each has a source, none is beyond physics, and what is not verified never gates."""

from __future__ import annotations

import json
import re

import pytest
from project import ROOT

from ultracluster.acceptance import Gate, figures, gates
from ultracluster.acceptance.curves import ceiling
from ultracluster.acceptance.patterns import patterns, protocol_of, scripts_folder
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


def test_every_type_is_in_the_catalogue_and_its_line_rate_is_that() -> None:
    for name, busbw in DOCUMENT["ring_ceiling"]["types"].items():
        kind = instance_type(name)
        assert kind and kind.network_gbps == busbw * 8, name
    assert {figure.type for figure in figures()} <= set(instance_types())


def test_the_table_of_the_nodes_is_that_of_the_catalogue() -> None:
    table = json.loads((scripts_folder() / "verify" / "instance_types.json").read_text())["types"]
    expected = {
        kind.name: {
            "efa_interfaces": [kind.efa_interfaces]
            if kind.efa_interfaces
            else [*kind.recommended_efa_interfaces],
            "gpu_direct_rdma": kind.gpu_direct_rdma,
            "lustre_efa_interfaces": kind.lustre_efa_interfaces if kind.lustre_efa_client else 0,
        }
        for kind in instance_types().values()
        if kind.accelerator and (kind.efa_interfaces or kind.recommended_efa_interfaces)
    }

    assert table == expected


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
    assert protocol_of(name) == protocol


def test_patterns_find_what_they_look_for_first() -> None:
    """A line that lacks the literal part is never shown to the regular expression."""
    for pattern in patterns():
        assert pattern.contains
        plain = re.sub(r"\\(.)", r"\1", pattern.regex.pattern)
        assert all(
            part and (pattern.contains in part or "Socket" in part) for part in plain.split("|")[:1]
        ), pattern.id
    assert len({pattern.id for pattern in patterns()}) == len(patterns())

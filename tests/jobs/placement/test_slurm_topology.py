"""The generator of Slurm's topology: whatever EC2 or HyperPod answers, every node once, below one root."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ultracluster.catalog.slurm_refusals import FileRefusal, slurm_file_refusals
from ultracluster.jobs.placement.slurm_topology import (
    Place,
    Tree,
    as_yaml,
    blocks,
    faults,
    labelled_nodes,
    place_of_instance,
    tree,
)

pytestmark = pytest.mark.slow

NODES = [f"gpu-st-p5-{number}" for number in range(1, 13)]
DEPTH = 6
ids = st.one_of(
    st.sampled_from(
        ["nn-1", "nn-01", "nn-001", "nn-[1-3]", "unplaced", "ultracluster", "1", "", " ", "a,b", "é"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=70),
    st.integers(0, 10**17).map(lambda number: f"nn-{number:017x}"),
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "NetworkNodes": st.one_of(
            st.none(), st.text(max_size=3), st.lists(st.one_of(ids, st.none()), max_size=6)
        ),
        "CapacityBlockId": st.one_of(st.none(), ids, st.integers()),
    },
)
names = st.lists(
    st.from_regex(r"[a-z]{1,3}-(st|dy)-[a-z0-9]{1,4}-[0-9]{1,4}", fullmatch=True), min_size=1, max_size=40
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[str], dict[str, Place]]:
    """Names of nodes, and places of some of them; a place may be of a node that is gone."""
    nodes = draw(names)
    told = {node: place_of_instance(draw(answers)) for node in [*nodes, "gone-1"]}
    return nodes, {node: place for node, place in told.items() if place}


def depth_of(switches: list[dict[str, Any]], top: str = "ultracluster") -> int:
    row = next(switch for switch in switches if switch["switch"] == top)
    return 1 + max((depth_of(switches, child) for child in row.get("children", ())), default=0)


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_a_tree_has_every_node_once_below_one_root(cluster: tuple[list[str], dict[str, Place]]) -> None:
    nodes, places = cluster
    made = tree(nodes, places)
    switches = made["tree"]
    assert sorted(node for row in switches for node in row.get("nodes", ())) == sorted(set(nodes))
    called = [row["switch"] for row in switches]
    assert len(set(called)) == len(called)
    children = [child for row in switches for child in row.get("children", ())]
    assert sorted([*children, "ultracluster"]) == sorted(called)
    assert all(bool(row.get("nodes")) != bool(row.get("children")) for row in switches)
    assert depth_of(switches) <= DEPTH
    assert all(len(name) <= 64 and name.replace("-", "").isalnum() and name.isascii() for name in called)
    assert not faults(made, nodes)
    (read,) = yaml.safe_load(as_yaml(made))
    assert [switch["switch"] for switch in read["tree"]["switches"]] == called


@pytest.mark.parametrize(
    "row", [row for row in slurm_file_refusals() if row.file == "topology.yaml"], ids=lambda row: row.says
)
def test_what_slurmctld_refuses_is_a_fault(row: FileRefusal) -> None:
    assert faults(row.bad, ["n1"])
    assert not faults(row.good, ["n1"])


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 20))
def test_blocks_have_every_node_once_and_are_no_larger_than_an_ultraserver(
    cluster: tuple[list[str], dict[str, Place]], size: int
) -> None:
    nodes, places = cluster
    made = blocks(nodes, places, size=size)
    assert sorted(node for row in made["blocks"] for node in row["nodes"]) == sorted(set(nodes))
    assert all(1 <= len(row["nodes"]) <= size for row in made["blocks"])
    assert not faults(made, nodes)
    (read,) = yaml.safe_load(as_yaml(made))
    assert read["block"]["block_sizes"] == [size]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=30), st.data())
def test_a_replaced_node_moves_and_every_other_stays_where_it_was(
    where: list[tuple[int, int]], data: st.DataObject
) -> None:
    nodes = [f"n{number}" for number in range(len(where))]
    places = {
        node: Place(path=["nn-0", f"nn-a{middle}", f"nn-b{middle}{leaf}"], block=None)
        for node, (middle, leaf) in zip(nodes, where, strict=True)
    }
    replaced = data.draw(st.sampled_from(nodes))
    moved = {**places, replaced: Place(path=["nn-0", "nn-a9", "nn-b99"], block=None)}
    before, after = (leaves_of(as_yaml(tree(nodes, one))) for one in (places, moved))
    assert after.pop(replaced) == "nn-b99"
    before.pop(replaced)
    assert after == before


def leaves_of(text: str) -> dict[str, str]:
    """The leaf of each node."""
    (read,) = yaml.safe_load(text)
    rows = read["tree"]["switches"]
    return {node: row["switch"] for row in rows for node in row.get("nodes", "").split(",") if node}


def test_the_same_places_make_the_same_bytes_in_any_order() -> None:
    places = {node: Place(path=["nn-0", f"nn-{number % 3}"], block=None) for number, node in enumerate(NODES)}
    backwards = dict(reversed(places.items()))
    assert as_yaml(tree(NODES, places)) == as_yaml(tree(list(reversed(NODES)), backwards))


def test_nodes_of_which_nothing_is_told_share_one_leaf() -> None:
    made = tree(NODES, {"gpu-st-p5-1": Place(path=["nn-0", "nn-1", "nn-2"], block=None)})
    leaves = {row["switch"]: row["nodes"] for row in made["tree"] if "nodes" in row}
    assert leaves == {"nn-2": ["gpu-st-p5-1"], "unplaced": NODES[1:]}
    assert tree(NODES, {})["tree"][-1] == {"switch": "ultracluster", "children": ["unplaced"]}


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ({"NetworkNodes": ["nn-1", "nn-2", "nn-3"]}, {"path": ["nn-1", "nn-2", "nn-3"], "block": None}),
        (
            {"NetworkNodes": ["a", "b", "c", "d"], "CapacityBlockId": "cb-1"},
            {"path": list("abcd"), "block": "cb-1"},
        ),
        ({"NetworkNodes": ["a", "b", "c", "d", "e"]}, {"path": list("bcde"), "block": None}),
        ({"NetworkNodes": [], "CapacityBlockId": "cb-1"}, {"path": [], "block": "cb-1"}),
        ({"NetworkNodes": ["a", "b", "a"]}, None),
        ({"NetworkNodes": ["a", None]}, None),
        ({"NetworkNodes": ["a", ""]}, None),
        ({"NetworkNodes": "abc"}, None),
        ({"NetworkNodes": None, "CapacityBlockId": None}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_an_answer_is_a_place_or_nothing(answer: object, place: object) -> None:
    assert place_of_instance(answer) == place


@pytest.mark.parametrize("nodes", [[], ["n1", "n[2-3]"], ["n1,n2"], ["-"], ["n 1"]])
def test_a_name_that_is_not_one_node_makes_no_file(nodes: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no nodes|no name of one node"):
        tree(nodes, {})


def test_faults_are_seen() -> None:
    good = tree(NODES, {})
    assert faults(good, [*NODES, "more"]) == ["not once: more"]
    assert faults(good, NODES[1:]) == ["not once: gpu-st-p5-1"]
    twice: Tree = {"tree": [*good["tree"], {"switch": "other", "nodes": ["gpu-st-p5-1"]}]}
    assert faults(twice, NODES) == ["not once: gpu-st-p5-1", "not all below one root"]
    ring: Tree = {
        "tree": [*good["tree"][:-1], {"switch": "ultracluster", "children": ["ultracluster", "unplaced"]}]
    }
    assert "deeper than 6 levels" in faults(ring, NODES)


LABELS = {"network-node-layer-1": "nn-1", "network-node-layer-2": "nn-2", "network-node-layer-3": "nn-3"}
CONFIG = {
    "InstanceGroups": [
        {
            "Name": "gpu",
            "Instances": [
                {
                    "InstanceName": "gpu-1",
                    "InstanceId": "i-1",
                    "CustomerIpAddress": "10.1.0.21",
                    "InstanceLabel": LABELS,
                },
                {
                    "InstanceName": "gpu-2",
                    "InstanceId": "i-2",
                    "CustomerIpAddress": "10.1.0.22",
                    "InstanceLabel": None,
                },
                {
                    "InstanceName": "gpu-3",
                    "InstanceId": "i-3",
                    "InstanceLabel": {"topology.k8s.aws/ultraserver-id": "us-1"},
                },
                {},
            ],
        },
        {"Name": "empty", "Instances": None},
    ]
}


def test_labels_of_hyperpod_are_places() -> None:
    one, two, three = labelled_nodes(json.loads(json.dumps(CONFIG)))
    assert one.names == {"gpu-1", "i-1", "10.1.0.21", "ip-10-1-0-21"}
    assert (one.group, one.place) == ("gpu", {"path": ["nn-1", "nn-2", "nn-3"], "block": None})
    assert two.place is None
    assert three.place == {"path": [], "block": "us-1"}


@pytest.mark.parametrize(
    "document", [None, [], {}, {"InstanceGroups": 1}, {"InstanceGroups": [None, {"Instances": [1]}]}]
)
def test_another_document_has_no_nodes(document: object) -> None:
    assert labelled_nodes(document) == []

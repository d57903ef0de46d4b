"""How far apart the nodes of a job are: against counting by hand, and against every other choice of nodes."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultracluster.jobs.placement.slurm_topology import Place
from ultracluster.jobs.placement.spread import node_names, placement


def at(*path: str, block: str | None = None) -> Place:
    return Place(path=list(path), block=block)


PLACES = {f"a{number}": at("r", "m1", "l1") for number in range(4)}
PLACES |= {f"b{number}": at("r", "m1", "l2") for number in range(2)}
PLACES |= {f"c{number}": at("r", "m2", "l3") for number in range(3)}


def test_a_job_over_three_leaves_where_one_would_do() -> None:
    found = placement(["a0", "a1", "b0", "c0"], PLACES)
    assert [(layer.name, dict(layer.spans), layer.best) for layer in found.layers] == [
        ("layer-1", {"r": 4}, (4,)),
        ("layer-2", {"m1": 3, "m2": 1}, (4,)),
        ("layer-3", {"l1": 2, "l2": 1, "l3": 1}, (4,)),
    ]
    assert [layer.excess for layer in found.layers] == [0, 1, 2]
    assert not found.good
    assert placement(["a0", "a1", "a2", "a3"], PLACES).good


def test_nodes_without_a_place_are_counted_nowhere() -> None:
    found = placement(["a0", "x", "x"], PLACES)
    assert found.unknown == ("x",)
    assert [sum(layer.spans.values()) for layer in found.layers] == [1, 1, 1]
    assert placement(["x"], {}).layers == ()


def test_ultraservers_are_a_layer_of_their_own() -> None:
    places = {f"n{number}": at("r", block=f"us-{number // 2}") for number in range(4)}
    found = placement(["n0", "n2"], places)
    assert [(layer.name, dict(layer.spans), layer.best) for layer in found.layers] == [
        ("layer-1", {"r": 2}, (2,)),
        ("ultraserver", {"us-0": 1, "us-1": 1}, (2,)),
    ]


def test_types_with_four_layers_and_with_three_stand_beside_each_other() -> None:
    places = {"a": at("r", "m", "l"), "b": at("r", "m", "s", "l4"), "c": at("r", "m", "s", "l4")}
    found = placement(["a", "b", "c"], places)
    assert [(layer.name, dict(layer.spans)) for layer in found.layers] == [
        ("layer-1", {"r": 3}),
        ("layer-2", {"m": 3}),
        ("layer-3", {"s": 2, "l": 1}),
        ("layer-4", {"l4": 2}),
    ]


def test_one_id_below_two_switches_is_two_switches() -> None:
    found = placement(["a", "b"], {"a": at("r", "m1", "l"), "b": at("r", "m2", "l")})
    assert dict(found.layers[2].spans) == {"r/m1/l": 1, "r/m2/l": 1}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=8), st.data())
def test_no_choice_of_nodes_spans_fewer(where: list[tuple[int, int]], data: st.DataObject) -> None:
    places = {f"n{number}": at("r", f"m{m}", f"l{m}{leaf}") for number, (m, leaf) in enumerate(where)}
    size = data.draw(st.integers(1, len(where)))
    chosen = data.draw(st.sampled_from(list(combinations(places, size))))
    for level, layer in enumerate(placement(chosen, places).layers):
        fewest = min(
            len({places[node]["path"][level] for node in some}) for some in combinations(places, size)
        )
        assert len(layer.best) == fewest
        assert sum(layer.best) == size
        assert layer.excess >= 0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "gpu-st-p5-[1-3,07],login-1",
            ["gpu-st-p5-1", "gpu-st-p5-2", "gpu-st-p5-3", "gpu-st-p5-07", "login-1"],
        ),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("i-0a, 10.1.0.5  ip-10-1-0-6", ["i-0a", "10.1.0.5", "ip-10-1-0-6"]),
        ("a,a", ["a"]),
    ],
)
def test_lists_of_nodes_as_slurm_writes_them(text: str, names: list[str]) -> None:
    assert node_names(text) == names


@pytest.mark.parametrize(
    "text", ["", " , ", "n[1-", "n]", "n[]", "n[a-b]", "n[3-1]", "n[1-999999]", "n[1-1000][1-1000]"]
)
def test_what_is_no_list_of_nodes(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        node_names(text)

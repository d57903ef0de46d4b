"""The rows of pairs hold together."""

from __future__ import annotations

from ultracluster.catalog.combinations import features, pairs, unknown_pairs
from ultracluster.catalog.wishes import wishes
from ultracluster.plan.choice import CAPACITIES, questions


def test_each_pair_stands_once() -> None:
    seen = [(frozenset((pair.at.name, pair.other.name)), kind) for pair in pairs() for kind in pair.on]
    assert len(seen) == len(set(seen))
    assert all(pair.source and pair.date and pair.why.endswith(".") for pair in pairs())


def test_every_feature_is_in_a_pair_and_known_to_choose() -> None:
    assert {name for pair in pairs() for name in (pair.at.name, pair.other.name)} == set(features())
    assert {name for one in features().values() for name in one.choose} <= {
        *wishes(),
        *questions(),
        *CAPACITIES,
    }


def test_unknown_pairs_are_counted() -> None:
    assert unknown_pairs()
    for unknown, every in unknown_pairs().values():
        assert 0 < unknown < every

"""Domains of accelerators: one node, or an UltraServer."""

from __future__ import annotations

import pytest

from ultracluster.catalog import InstanceType, instance_types, ultraservers
from ultracluster.catalog.sizing import accelerator_domain


@pytest.mark.parametrize(
    ("nodes", "size", "name"),
    [(18, 72, "u-p6e-gb200x72"), (36, 72, "u-p6e-gb200x72"), (9, 36, "u-p6e-gb200x36"), (10, None, None)],
)
def test_ultraservers_come_whole(nodes: int, size: int | None, name: str | None) -> None:
    found = accelerator_domain(instance_types()["p6e-gb200.36xlarge"], nodes)
    assert (found and found.size, found and found.ultraserver) == (size, name)


def test_every_accelerated_type_has_a_known_domain() -> None:
    """The table of links has every family of the catalogue's accelerated types."""
    for name, known in instance_types().items():
        if known.accelerator is None:
            continue
        nodes = max((ultraservers()[one].instances for one in known.ultraserver), default=1)
        found = accelerator_domain(known, nodes)
        assert found is not None, name
        assert found.size in (1, known.accelerator.count) or found.ultraserver, name


def test_a_declared_type_has_an_unknown_domain() -> None:
    assert accelerator_domain(InstanceType(name="p9.48xlarge"), 4) is None

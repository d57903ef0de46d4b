"""Which devices pods claim."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.model.devices import claims_devices, claims_efa, compute_domain_types, imex_groups

RACK = {"node_groups.rack": {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 18}}


@pytest.mark.parametrize(
    ("base", "changes", "groups", "joined", "efa"),
    [
        ("eks-p5en", {}, [], [], False),
        ("eks-p5en", RACK, ["rack"], ["p6e-gb200.36xlarge"], False),
        ("eks-p5en", {**RACK, "orchestrator.compute_domains": False}, ["rack"], [], False),
        ("eks-p5en", {"orchestrator.efa_devices": "dra"}, [], [], True),
        ("hyperpod-eks-p5", RACK, ["rack"], ["p6e-gb200.36xlarge"], False),
        ("parallelcluster-gb200", {}, ["gb200"], [], False),
    ],
)
def test_what_is_claimed(
    base: str, changes: dict[str, Any], groups: list[str], joined: list[str], efa: bool
) -> None:
    cluster = resolve(environment(changes, base=base))

    assert list(imex_groups(cluster)) == groups
    assert [known.name for known in compute_domain_types(cluster)] == joined
    assert claims_efa(cluster) == efa
    assert claims_devices(cluster) == (efa or bool(joined))

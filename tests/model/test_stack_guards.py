"""Policies of stacks that hold data."""

from __future__ import annotations

import pytest
from blast_radius_support import refuses

from ultracluster.catalog.data_kinds import kinds_with_data
from ultracluster.model.stack_guards import OPEN, closed


@pytest.mark.parametrize("action", ["Update:Delete", "Update:Replace"])
def test_a_closed_policy_refuses_what_holds_data_and_nothing_else(action: str) -> None:
    assert all(refuses(closed(), "Any", kind, action) for kind in kinds_with_data())
    assert not refuses(closed(), "Any", "AWS::EC2::Route", action)
    assert not any(refuses(closed(), "Any", kind, "Update:Modify") for kind in kinds_with_data())
    assert not any(refuses(OPEN, "Any", kind, action) for kind in kinds_with_data())

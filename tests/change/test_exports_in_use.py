"""An export that goes while another stack reads it: which order of commands works."""

from __future__ import annotations

from typing import Any

from three_stacks import NODES, STORAGE, network

from ultracluster.change import blast_radius


def test_what_is_exported_and_read_goes_in_the_other_order() -> None:
    """Storage first, as a deploy goes, CloudFormation refuses; the row says what works."""
    old = {"dev-network": network("10.0.0.0/16"), "dev-storage": STORAGE, "dev-cluster": NODES}
    new = {**old, "dev-storage": {**STORAGE, "Outputs": {}}, "dev-cluster": {"Resources": {}}}

    (row,) = [change for change in blast_radius(old, new) if change.refused]

    assert (row.stack, row.logical_id) == ("dev-storage", "")
    assert "`dev-storage-Dns` goes, and dev-cluster imports it" in row.reason
    assert "`cdk deploy -c env=dev -e dev-cluster`, then `cdk deploy -c env=dev --all`" in row.reason


def test_a_reader_that_stays_or_is_left_behind_must_let_go_first() -> None:
    old = {"dev-storage": STORAGE, "dev-cluster": NODES}
    gone = {**STORAGE, "Outputs": {}}

    def reason(new: dict[str, Any]) -> str:
        (row,) = [change for change in blast_radius(old, new) if change.refused and not change.logical_id]
        return row.reason

    assert "take the import out of dev-cluster" in reason({**old, "dev-storage": gone})
    assert "delete-stack --stack-name dev-cluster" in reason({"dev-storage": gone})
    assert not [change for change in blast_radius(old, {**old, "dev-cluster": {}}) if change.refused]

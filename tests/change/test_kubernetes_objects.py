"""A namespace that leaves a manifest takes with it what is in it, and nobody deploys that unnamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blast_radius_support import changes, resource, stack

from ultracluster.change import Verdict, blast_radius, worst
from ultracluster.change.kubernetes_objects import MANIFEST
from ultracluster.kubernetes.storage import lustre_volume


def space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def manifest(*objects: dict[str, Any]) -> dict[str, Any]:
    return {"ClusterName": "c", "Manifest": json.dumps(objects), "PruneLabel": "aws.cdk.eks/prune-1"}


A, B = space("team-a"), space("team-b")
CLAIM = lustre_volume(file_system_id="fs-1", dns_name="fs-1.example", mount_name="abc", namespace="team-a")


def test_a_team_that_goes_is_data_loss_until_it_is_accepted() -> None:
    (change,) = changes(MANIFEST, manifest(A, B), manifest(B))

    assert change.verdict is Verdict.DATA_LOSS and change.verdict.needs_acceptance
    assert "namespace team-a is deleted" in change.reason
    assert change.resource == "s/R"


def test_so_it_is_when_the_whole_manifest_goes() -> None:
    (change,) = blast_radius(stack(R=resource(MANIFEST, manifest(A, B))), stack())

    assert change.verdict is Verdict.DATA_LOSS and "team-a, team-b" in change.reason


def test_a_team_that_is_renamed_is_another_namespace() -> None:
    assert worst(changes(MANIFEST, manifest(A), manifest(B))) is Verdict.DATA_LOSS


def test_names_that_are_known_later_do_not_hide_it() -> None:
    def joined(*objects: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps([*objects, {"kind": "ConfigMap", "metadata": {"name": "x", "uid": "HERE"}}])
        first, last = text.split("HERE")
        return {"Manifest": {"Fn::Join": ["", [first, {"Ref": "FileSystem"}, last]]}}

    assert worst(changes(MANIFEST, joined(A, B), joined(B))) is Verdict.DATA_LOSS
    assert worst(changes(MANIFEST, joined(A), joined(A, B))) is Verdict.IN_PLACE


def test_a_claim_that_goes_is_told() -> None:
    (change,) = changes(MANIFEST, manifest(*CLAIM), manifest())

    assert change.verdict is Verdict.AT_RISK and "lustre" in change.reason


@pytest.mark.parametrize("text", ["", "{", "[1, null]", '{"kind": "Namespace"}', "[" * 5000])
def test_what_cannot_be_read_is_the_functions_affair(text: str) -> None:
    (change,) = changes(MANIFEST, manifest(A), {**manifest(A), "Manifest": text}) or [None]

    assert change
    assert change.verdict in (Verdict.IN_PLACE, Verdict.DATA_LOSS)


def test_labels_of_a_namespace_change_in_place() -> None:
    labelled = {**A, "metadata": {**A["metadata"], "labels": {"a": "b"}}}

    assert worst(changes(MANIFEST, manifest(A), manifest(labelled, B))) is Verdict.IN_PLACE


def test_spaces_that_go_are_told() -> None:
    template = {
        "apiVersion": "workspace.jupyter.org/v1alpha1",
        "kind": "WorkspaceTemplate",
        "metadata": {"name": "ultracluster", "namespace": "team-a"},
    }
    (change,) = blast_radius(stack(R=resource(MANIFEST, manifest(template))), stack())

    assert change.verdict is Verdict.AT_RISK and "every space and its volume" in change.reason

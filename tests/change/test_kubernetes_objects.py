"""A namespace that leaves a manifest takes with it what is in it, and nobody deploys that unnamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from blast_radius_support import changes, resource, stack
from rows import for_each

from ultracluster.change import Verdict, blast_radius, kubernetes_objects, worst
from ultracluster.change.changes import MISSING
from ultracluster.change.kubernetes_objects import KIND, MANIFEST, judge_field
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
        return manifest() | {"Manifest": {"Fn::Join": ["", [first, {"Ref": "FileSystem"}, last]]}}

    assert worst(changes(MANIFEST, joined(A, B), joined(B))) is Verdict.DATA_LOSS
    assert worst(changes(MANIFEST, joined(A), joined(A, B))) is Verdict.IN_PLACE


def test_a_claim_that_goes_is_told() -> None:
    (change,) = changes(MANIFEST, manifest(*CLAIM), manifest())

    assert change.verdict is Verdict.AT_RISK and "lustre" in change.reason


@pytest.mark.parametrize("text", ["", "{", "[1, null]", '{"kind": "Namespace"}', "[" * 5000])
def test_what_cannot_be_read_is_not_known(text: str) -> None:
    (change,) = changes(MANIFEST, manifest(A), {**manifest(A), "Manifest": text}) or [None]

    assert change
    assert change.verdict in (Verdict.NOT_KNOWN, Verdict.DATA_LOSS)


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


def test_what_leaves_a_manifest_that_does_not_prune_stays() -> None:
    old, new = ({"ClusterName": "c", "Manifest": json.dumps(ones)} for ones in ((A, B), (A,)))
    (change,) = changes(MANIFEST, old, new)

    assert change.verdict is Verdict.IN_PLACE
    assert "Namespace team-b leaves the manifest and stays" in change.reason


FACTS = json.loads(Path(kubernetes_objects.__file__).with_name("kubernetes_facts.json").read_text())["facts"]
VALUES = {
    "added": (MISSING, "b"),
    "removed": ("a", MISSING),
    "increased": (1, 2),
    "more": (["a"], ["a", "b"]),
    None: ("a", "b"),
}


@for_each(
    "fact",
    [fact for fact in FACTS if fact["path"] or "change" not in fact],
    ids=lambda fact: f"{fact['type']} {fact['path']} {fact.get('change', '')}",
)
def test_each_fact_of_an_object_is_found(fact: dict[str, Any]) -> None:
    before, after = VALUES[fact.get("change")]
    kind = fact["type"].removeprefix(KIND).replace("*", "HyperpodNodeClass")  # which has no row for all of it
    steps = tuple(fact["path"].replace("[]", ".[0]").split(".")) if fact["path"] else ("any",)
    ruling = judge_field((kind, "", "x"), steps, before, after, ({}, {}))

    assert ruling.verdict == fact["verdict"]
    assert fact["reason"] in ruling.reason and fact["date"] in ruling.source


@for_each("fact", FACTS, ids=lambda fact: f"{fact['type']} {fact['path']}")
def test_each_fact_of_an_object_has_a_dated_source(fact: dict[str, Any]) -> None:
    assert Verdict(fact["verdict"]) is not Verdict.NOT_KNOWN
    assert fact["reason"] and fact["source"] and len(fact["date"]) == 10


@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact["path"] == "" and "change" in fact])
def test_what_goes_with_an_object_is_said_of_its_kind(fact: dict[str, Any]) -> None:
    one = {"kind": fact["type"].removeprefix(KIND), "metadata": {"name": "x"}}
    (change,) = changes(MANIFEST, manifest(A, one), manifest(A))

    assert change.verdict == fact["verdict"] and fact["reason"] in change.reason


def test_an_object_of_a_kind_that_no_source_is_about_is_not_known() -> None:
    odd = {"kind": "Odd", "metadata": {"name": "x"}, "spec": {"a": 1}}
    (change,) = changes(MANIFEST, manifest(odd), manifest({**odd, "spec": {"a": 2}}))

    assert change.verdict is Verdict.NOT_KNOWN and "Odd x: spec.a" in change.reason


def test_a_field_that_the_api_refuses_is_worse_than_what_changes_beside_it() -> None:
    old = {"kind": "StorageClass", "metadata": {"name": "ebs"}, "parameters": {"type": "gp3"}}
    new = {**old, "parameters": {"type": "io2"}, "allowVolumeExpansion": True}
    (change,) = changes(MANIFEST, manifest(old), manifest(new, B))

    assert change.refused and not change.replaces
    assert "StorageClass ebs: parameters.type: the API refuses other parameters" in change.reason
    assert "added" not in change.reason


def test_a_volume_whose_file_system_is_replaced_is_refused() -> None:
    def volume(subnet: str) -> dict[str, Any]:
        first, last = json.dumps(CLAIM).split("fs-1.example")
        text = {"Fn::Join": ["", [first, {"Fn::GetAtt": ["FileSystem", "DNSName"]}, last]]}
        return stack(
            FileSystem=resource("AWS::FSx::FileSystem", {"SubnetIds": [subnet]}),
            Volume=resource(MANIFEST, manifest() | {"Manifest": text}),
        )

    found = blast_radius(volume("subnet-1"), volume("subnet-2"))
    (change,) = [one for one in found if one.logical_id == "Volume"]

    assert change.refused and "the API refuses another source of a volume" in change.reason

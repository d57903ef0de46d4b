"""Ten changes that guides of AWS forbid, through the command: the reason, and the order that works."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ultracluster.cli.diff import diff

Templates = dict[str, Any]
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(diff)

TEN: list[tuple[str, str, list[tuple[str, dict[str, Any]]], str, list[str]]] = [
    # what, environment, [(type, changed properties)], words of the reason, words of each deployment
    ("a capacity between two steps", "prod", [("AWS::FSx::FileSystem", {"StorageCapacity": 40000})],
     "multiples of 9600 GiB only", ["StorageCapacity 48000"]),
    ("a smaller file system", "prod", [("AWS::FSx::FileSystem", {"StorageCapacity": 19200})],
     "capacity only grows", ["a copy of the files", "goes when nothing mounts it"]),
    ("capacity and metadata at once", "prod",
     [("AWS::FSx::FileSystem", {"StorageCapacity": 48000,
                                "LustreConfiguration.MetadataConfiguration.Iops": 24000})],
     "one after the other", ["the capacity alone", "the metadata IOPS alone"]),
    ("metadata IOPS by capacity where more were bought", "prod",
     [("AWS::FSx::FileSystem", {"LustreConfiguration.MetadataConfiguration": {"Mode": "AUTOMATIC"},
                                "StorageCapacity": 9600})],
     "AUTOMATIC would give 6000", ["StorageCapacity 12000", "Mode AUTOMATIC"]),
    ("a database that grows too little", "prod", [("AWS::RDS::DBInstance", {"AllocatedStorage": "105"})],
     "at least 10 percent", ["AllocatedStorage 110"]),
    ("another type for a group of HyperPod", "prod",
     [("AWS::SageMaker::Cluster", {"InstanceGroups.0.InstanceType": "ml.m5.8xlarge"})],
     "keeps its instance type", ["a group of another name", "this group goes"]),
    ("three releases of Kubernetes at once", "eks-p5en", [("AWS::EKS::Cluster", {"Version": "1.39"})],
     "one minor release at a time", ["1.37", "1.38", "1.39"]),
    ("a release of Kubernetes and another endpoint", "eks-p5en",
     [("AWS::EKS::Cluster", {"Version": "1.37", "ResourcesVpcConfig.EndpointPublicAccess": True})],
     "one type of update at a time", ["endpoints", "the release alone"]),
    ("a node group's image together with its size", "eks-p5en",
     [("AWS::EKS::Nodegroup", {"ReleaseVersion": "1.36.0-20261101", "ScalingConfig.MaxSize": 9})],
     "nothing else of a node group changes", ["everything but the release", "nodes are drained"]),
    ("an older Slurm", "pcs-p6-b200", [("AWS::PCS::Cluster", {"Scheduler.Version": "25.05"})],
     "newer releases only", ["another name with 25.05", "goes when nothing runs"]),
]  # fmt: skip


def put(properties: dict[str, Any], path: str, value: Any) -> None:
    here: Any = properties
    *above, last = path.split(".")
    for step in above:
        here = here[int(step)] if step.isdigit() else here[step]
    here[last] = value


def changed(templates: Templates, kind: str, properties: dict[str, Any]) -> Templates:
    """The same with other properties of the first resource of a type."""
    made = copy.deepcopy(templates)
    resources = [one for template in made.values() for one in template["Resources"].values()]
    first = next(one for one in resources if one["Type"] == kind)
    for path, value in properties.items():
        put(first["Properties"], path, value)
    return made


def run(folder: Path, before: Templates, after: Templates, *options: str) -> Any:
    for name, templates in (("before", before), ("after", after)):
        (folder / name).mkdir()
        for stack, template in templates.items():
            (folder / name / f"{stack}.template.json").write_text(json.dumps(template))
    return CliRunner().invoke(app, ["--templates", str(folder / "before"), str(folder / "after"), *options])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "name", "differences", "reason", "order"), TEN, ids=[row[0].replace(" ", "-") for row in TEN]
)
def test_what_a_guide_forbids_is_refused_with_the_order_that_works(
    what: str,
    name: str,
    differences: list[tuple[str, dict[str, Any]]],
    reason: str,
    order: list[str],
    synthesised: Callable[[str], Any],
    tmp_path: Path,
) -> None:
    before = synthesised(name).templates
    if what.startswith("metadata IOPS by"):  # the deployed one is small, and has more than its capacity gives
        small = {"StorageCapacity": 9600, "LustreConfiguration.MetadataConfiguration.Iops": 12000}
        before = changed(before, "AWS::FSx::FileSystem", small)
    after = before
    for kind, properties in differences:
        after = changed(after, kind, properties)
    result = run(tmp_path, before, after, "--json")
    document = json.loads(result.stdout)

    assert result.exit_code == 1, result.output
    assert document["verdict"] == "refused"
    found = [one for one in document["changes"] if one["refused"] and reason in one["reason"]]
    assert found, [one["reason"] for one in document["changes"]]
    for one in found:
        assert len(one["order"]) == len(order)
        assert all(words in step for words, step in zip(order, one["order"], strict=True)), one["order"]
        assert "In this order it works: deployment 1: " in one["reason"]
        assert one["source"].count("(20"), one["source"]


@pytest.mark.slow
def test_each_of_several_reasons_has_its_deployments(
    synthesised: Callable[[str], Any], tmp_path: Path
) -> None:
    before = synthesised("prod").templates
    iops = "LustreConfiguration.MetadataConfiguration.Iops"
    after = changed(before, "AWS::FSx::FileSystem", {"StorageCapacity": 40000, iops: 24000})
    document = json.loads(run(tmp_path, before, after, "--json").stdout)
    (capacity,) = [one for one in document["changes"] if one["path"] == "StorageCapacity"]

    assert "multiples of" in capacity["reason"] and "one after the other" in capacity["reason"]
    assert "StorageCapacity 48000" in capacity["order"][0]
    assert [step for step in capacity["order"] if "alone" in step] == capacity["order"][-2:]
    assert capacity["reason"].count(capacity["order"][0]) == 1


@pytest.mark.slow
def test_the_report_shows_reason_order_and_what_is_not_deployed(
    synthesised: Callable[[str], Any], tmp_path: Path
) -> None:
    before = synthesised("eks-p5en").templates
    result = run(tmp_path, before, changed(before, "AWS::EKS::Cluster", {"Version": "1.38"}), "--markdown")

    assert "**refused**" in result.stdout
    assert "deployment 1: kubernetes" in result.stdout and "deployment 2: kubernetes" in result.stdout
    assert "AWS refuses as it is, and rolls back: eks-p5en-control-plane/" in result.stdout

"""The model of a first deploy: what waits for what, and the budget that the shipped environments keep."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from templates import Synthesised

from ultracluster.config import load
from ultracluster.plan.node_order import MINUTES


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("critical_path", ROOT / "benchmarks" / "critical_path.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["critical_path"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


model = _module()
OTHER, STACK = 0.1, 0.3


def resource(kind: str, *, after: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties, **({"DependsOn": after} if after else {})}


def minutes(*stacks: Any) -> tuple[float, float]:
    return round(model.side_by_side(stacks).minutes, 3), round(model.one_by_one(stacks).minutes, 3)


@pytest.mark.parametrize(
    "reference",
    [
        {"Ref": "Lustre"},
        {"Fn::GetAtt": ["Lustre", "DNSName"]},
        {"Fn::GetAtt": "Lustre.DNSName"},
        {"Fn::Sub": "mount ${Lustre.DNSName} /fsx"},
        {"Fn::Join": ["", ["a", {"Fn::Sub": ["${it}", {"it": {"Ref": "Lustre"}}]}]]},
    ],
)
def test_a_resource_waits_for_what_it_names(reference: dict[str, Any]) -> None:
    template = {
        "Resources": {
            "Lustre": resource("AWS::FSx::FileSystem"),
            "Cluster": resource("AWS::SageMaker::Cluster", Groups=[{"Mount": reference}]),
        }
    }

    assert model.longest(template).minutes == pytest.approx(27)
    assert [name for name, _ in model.longest(template).steps] == ["Lustre", "Cluster"]


def test_what_names_nothing_is_made_beside_it_and_literal_text_is_no_reference() -> None:
    template = {
        "Resources": {
            "Lustre": resource("AWS::FSx::FileSystem"),
            "Cluster": resource("AWS::SageMaker::Cluster", Text={"Fn::Sub": "${!Lustre} ${AWS::Region}"}),
            "Upload": resource("Custom::Anything", after=["Lustre"]),
            "Unknown": resource("AWS::New::Thing", after=["Upload"]),
        }
    }

    assert model.longest(template).minutes == pytest.approx(17)
    assert model.minutes_of("Custom::X") == model.minutes_of("AWS::CloudFormation::CustomResource") == 1
    assert model.minutes_of("AWS::New::Thing") == OTHER


def test_stacks_wait_for_those_that_they_need_and_for_no_others() -> None:
    plane = {"Resources": {"P": resource("AWS::EKS::Cluster")}}
    files = {"Resources": {"F": resource("AWS::FSx::FileSystem")}}
    export = {"Value": {"Ref": "F"}, "Export": {"Name": "files-F"}}
    reads = {"Resources": {"C": resource("AWS::SageMaker::Cluster", Mount={"Fn::ImportValue": "files-F"})}}
    stacks = (
        model.Stack(name="plane", template=plane),
        model.Stack(name="files", template=files | {"Outputs": {"F": export}}),
        model.Stack(name="reads", template=reads),
    )

    assert minutes(*stacks) == (10 + STACK + 17 + STACK, 10 + 10 + 17 + 3 * STACK)
    told = model.Stack(name="reads", template={"Resources": {}}, after=frozenset({"plane"}))
    assert minutes(*stacks[:2], told)[0] == 10 + 2 * STACK


def test_a_nested_stack_takes_what_its_template_takes(tmp_path: Path) -> None:
    (tmp_path / "main.yaml").write_text(
        "Resources:\n"
        "  V: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: !Sub 'https://x/${B}/vpc.yaml'}}\n"
        "  Cluster:\n    Type: AWS::SageMaker::Cluster\n    Properties: {Subnet: !GetAtt V.Outputs.Subnet}\n"
    )
    (tmp_path / "vpc.yaml").write_text("Resources:\n  Nat: {Type: AWS::EC2::NatGateway}\n")
    stacks = model.read([tmp_path / "main.yaml", tmp_path / "vpc.yaml"])

    assert minutes(*stacks) == (2 + STACK + 17 + STACK,) * 2


@pytest.mark.parametrize(
    ("text", "says"), [("[]", "no CloudFormation template"), ("Resource: {}", "no CloudFormation template")]
)
def test_what_is_no_template_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=says):
        model.read([file])


def test_a_circle_is_told() -> None:
    template = {"Resources": {"A": resource("T", X={"Ref": "B"}), "B": resource("T", X={"Ref": "A"})}}
    with pytest.raises(ValueError, match="wait for each other"):
        model.longest(template)


def test_the_plan_prints_the_minutes_of_the_model(synthesised: Callable[[str], Synthesised]) -> None:
    """What waiting for the system stack adds to the first deploy of HyperPod with Kubernetes."""
    name = "hyperpod-eks-p5"
    stacks = model.read([synthesised(name).folder])
    later = [
        replace(one, after=one.after | {f"{name}-system"}) if one.name == f"{name}-cluster" else one
        for one in stacks
    ]
    added = model.side_by_side(later).minutes - model.side_by_side(stacks).minutes

    assert round(added) == MINUTES


SETTLING = 0.2
"""Minutes behind the cluster for key, end and counts of its log group, which AWS's templates leave."""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_first_deploy_keeps_its_budget(name: str, synthesised: Callable[[str], Synthesised]) -> None:
    """0.85 of AWS's own HyperPod templates, with stacks side by side; each makes the slow things at once."""
    asked = load(ROOT / "environments" / f"{name}.yaml").environment
    kind = asked.orchestrator.kind
    made = synthesised(name)
    stacks = model.read([made.folder])
    path = model.side_by_side(stacks)

    assert {stack.name for stack in stacks} == set(made.templates)
    if kind in model.AWS_MINUTES:
        allowed = model.BUDGET * model.AWS_MINUTES[kind] + (SETTLING if asked.observability else 0)
        assert path.minutes <= allowed, path.steps
    kinds = {
        f"{stack.name}/{logical_id}": one["Type"]
        for stack in stacks
        for logical_id, one in stack.template["Resources"].items()
    }
    on_path = [kinds.get(step, "") for step, _ in path.steps]
    assert "AWS::FSx::DataRepositoryAssociation" not in on_path
    assert on_path.count("AWS::EKS::Cluster") + on_path.count("AWS::FSx::FileSystem") <= 1

"""What the templates of a locked environment name as image, and what they say of one that is not locked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Annotations, Match, Template
from project import ROOT

from ultracluster.config import Environment, load
from ultracluster.model import resolve
from ultracluster.model.unlocked_images import unlocked_images
from ultracluster.stacks.environment import build

AMI = "ami-0123456789abcdef0"
LOCKED = ("eks-p5en", "eks-trn2", "hyperpod-eks-p5", "pcs-p6-b200")


def row(environment: Environment, what: str) -> dict[str, Any]:
    if what.startswith("/"):
        return {"image": AMI, "parameter": what}
    assert environment.kubernetes
    return {"image": AMI, "release": f"{environment.kubernetes.kubernetes_version}.4-20261012"}


def images(template: Mapping[str, Any]) -> Iterator[Any]:
    """The image of each group, as its resource names it."""
    for one in template["Resources"].values():
        values = one.get("Properties", {})
        if one["Type"] == "AWS::EKS::Nodegroup":
            yield values.get("Version"), values.get("ReleaseVersion")
        elif one["Type"] == "AWS::PCS::ComputeNodeGroup":
            yield values["AmiId"]


@pytest.mark.parametrize("name", LOCKED)
def test_a_locked_environment_resolves_no_image_in_its_templates(name: str, tmp_path: Path) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    found = unlocked_images(resolve(environment))
    lock = {
        "schema": 1,
        "environment": name,
        "release": environment.software.release,
        "images": {one: {**row(environment, what), "recorded": "2026-11-27"} for one, what in found.items()},
    }
    for locked in (False, True):
        file = tmp_path / str(locked) / f"{name}.yaml"
        file.parent.mkdir()
        if locked:
            file.with_suffix(".lock").write_text(json.dumps(lock))
        stacks = build(App(outdir=str(tmp_path / f"out{locked}")), environment.at(file))
        named: list[Any] = []
        text = ""
        for stack in stacks:
            template = Template.from_stack(stack).to_json()
            named += images(template)
            text += json.dumps(template)
        cluster = next(stack for stack in stacks if stack.stack_name.endswith("-cluster"))
        notes = Annotations.from_stack(cluster).find_info(
            "*", Match.string_like_regexp("boot the newest image of the day")
        )
        assert len(named) == len(found)
        if locked:
            kubernetes = environment.kubernetes.kubernetes_version if environment.kubernetes else ""
            wanted = (kubernetes, f"{kubernetes}.4-20261012") if kubernetes else AMI
            assert set(named) == {wanted}
            assert "{{resolve:ssm:/aws/service" not in text
            assert notes == []
        else:
            assert all("resolve:ssm" in one if isinstance(one, str) else one[1] is None for one in named)
            assert len(notes) == 1

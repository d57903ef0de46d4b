"""Which release each group runs, as lines of the file; nothing is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from account_fixtures import keys
from hyperpod_service import HyperPod, account, group
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data, loaded
from typer.testing import CliRunner

from ultracluster.account import aws, software_pins
from ultracluster.account.nodes.hyperpod import read_cluster
from ultracluster.account.nodes.node import Outcome
from ultracluster.cli.main import app
from ultracluster.model import resolve

__all__ = ["keys"]

RUNS = {"CurrentImageReleaseVersion": "2.1.0"}


def found(
    changes: dict[str, Any], *groups: dict[str, Any], names: tuple[str, ...] = ()
) -> dict[str, Outcome]:
    aws_account = account()
    HyperPod(aws_account, InstanceGroups=list(groups))
    cluster = resolve(loaded(changed(environment_data("dev"), changes)).environment)
    outcomes = software_pins.pins(read_cluster(aws_account, "dev"), cluster.in_service, names)
    return {outcome.group: outcome for outcome in outcomes}


GPU = group("gpu", 2, "Compute", **RUNS)


@pytest.mark.parametrize(
    ("changes", "live", "result", "says"),
    [
        ({}, GPU, "would", "2.1.0"),
        ({"node_groups.gpu.image_release": "2.0.1"}, GPU, "would", "2.1.0"),
        ({"node_groups.gpu.image_release": "2.1.0"}, GPU, "already", "is pinned to 2.1.0"),
        ({"node_groups.gpu.image": "ami-0123456789abcdef0"}, GPU, "already", "names an image"),
        ({"node_groups.gpu.patching": {"kind": "when-idle"}}, GPU, "refused", "remove patching first"),
        ({}, group("gpu", 2, "Compute"), "refused", "tells no release"),
        ({}, group("other", 2, "Compute", **RUNS), "refused", "is not deployed yet"),
    ],
)
def test_what_the_file_should_say(
    changes: dict[str, Any], live: dict[str, Any], result: str, says: str
) -> None:
    live = {**live}
    if result == "refused" and "tells" in says:
        live.pop("CurrentImageReleaseVersion", None)
    gpu = found(changes, live)["gpu"]
    assert gpu.result == result and says in gpu.why


def test_only_groups_that_are_named_and_known() -> None:
    outcomes = found({}, GPU, names=("gpu", "gpus"))
    assert set(outcomes) == {"gpu", "gpus"}
    assert outcomes["gpus"].result == "refused" and "there are controller, login, gpu" in outcomes["gpus"].why


def test_the_lines_are_yaml_of_the_file() -> None:
    outcomes = found({}, GPU)
    text = "\n".join(software_pins.lines(list(outcomes.values())))
    assert YAML(typ="safe").load(text) == {"node_groups": {"gpu": {"image_release": "2.1.0"}}}
    assert software_pins.lines([]) == []


def test_from_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    aws_account = account()
    service = HyperPod(aws_account, InstanceGroups=[GPU])
    monkeypatch.setattr(aws, "Account", lambda **_: aws_account)
    words = ["nodes", "list", "--pins", str(ROOT / "environments" / "dev.yaml"), "--group", "gpu"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0 and 'image_release: "2.1.0"' in shown.output
    as_json = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert as_json["outcomes"] == [{"node": "gpu", "result": "would", "why": "2.1.0", "group": "gpu"}]
    assert not service.asked
    unknown = CliRunner().invoke(app, [*words[:4], "--group", "gpus"])
    assert unknown.exit_code == 1 and "no such group" in unknown.output
    eks = ["nodes", "list", "--pins", str(ROOT / "environments" / "eks-p5en.yaml")]
    assert CliRunner().invoke(app, eks).exit_code == 2

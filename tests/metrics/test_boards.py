"""Boards: generated files that are not stale, and what a cluster of each kind gets of them."""

from __future__ import annotations

import json
import re
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from needs import without_setup
from project import ROOT

from tools import boards as sources
from tools.dashboards.panels import Limits
from ultracluster.config import Environment, load
from ultracluster.metrics.boards import FOLDER, MOST_LETTERS, boards, deployed, uid
from ultracluster.metrics.facts import HAVES
from ultracluster.model import resolve

pytestmark = pytest.mark.slow  # some ask Grafana's Foundation SDK, which quick runs do not install
NAMES = ("health", "job", "fabric", "lustre", "queues", "money")
NO_SDK = without_setup("Grafana's Foundation SDK")


def watched(name: str, **changes: Any) -> Environment:
    """A shipped environment that is watched."""
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    return Environment.model_validate(
        environment.model_dump(mode="json", exclude_unset=True) | {"observability": {}, **changes}
    )


def rows(board: dict[str, Any]) -> list[str]:
    return [panel["title"] for panel in board["panels"] if panel["type"] == "row"]


def test_generated_boards_are_those_of_their_sources() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason=NO_SDK)

    assert sources.files() == {one.name: one.read_text() for one in FOLDER.glob("*.json")}, (
        "run `make generate`"
    )


def test_units_are_grafanas_own() -> None:
    """Grafana shows a unit that it does not know as text behind the figure, and says nothing."""
    units = pytest.importorskip("grafana_foundation_sdk.models.units", reason=NO_SDK)
    values = {value for name, value in vars(units).items() if isinstance(value, str) and name[0] != "_"}
    asked = {
        found
        for name in NAMES
        for found in re.findall(r'"unit": "([^"]*)"', (FOLDER / f"{name}.json").read_text())
    }
    asked |= {
        found
        for name in NAMES
        for found in re.findall(r'"id": "unit",\s*"value": "([^"]*)"', (FOLDER / f"{name}.json").read_text())
    }
    assert asked and asked <= values


def test_colours_change_where_limits_say() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason=NO_SDK)

    def steps(**limits: Any) -> list[tuple[float | None, str]]:
        return [(step.value, step.color) for step in Limits(**limits).steps()]

    assert steps() == [(None, "blue")]
    assert steps(warn=1, bad=5) == [(None, "green"), (1, "orange"), (5, "red")]
    assert steps(bad=1) == [(None, "green"), (1, "red")]
    assert steps(warn=0.3, bad=0.1, low=True) == [(None, "red"), (0.1, "orange"), (0.3, "green")]
    assert steps(bad=1, low=True) == [(None, "red"), (1, "green")]


@pytest.mark.parametrize("name", NAMES)
def test_a_board_is_readable_at_once(name: str) -> None:
    board = json.loads((FOLDER / f"{name}.json").read_text())
    panels = [one for top in board["panels"] for one in (top, *top.get("panels", ())) if one["type"] != "row"]
    titles = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert len(titles) == len(set(titles)), "rows are left out by their titles"
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert len(panel["description"]) > 10, panel["title"]
        assert panel["fieldConfig"]["defaults"].get("unit") or panel["type"] in ("table", "state-timeline"), (
            panel["title"]
        )
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    assert board["links"][0]["tags"] == ["ultracluster"]


@pytest.mark.slow
def test_cloudwatch_has_the_metrics_of_fsx_that_boards_ask_for() -> None:
    """By the metrics that the CDK knows, and one of FSx for Lustre's guide ("Metrics and dimensions")."""
    found = find_spec("aws_cdk")  # not imported: it takes a second
    assert found and found.origin
    [package] = (Path(found.origin).parent / "_jsii").glob("aws-cdk-lib@*.tgz")
    with tarfile.open(package) as content:
        source = content.extractfile("package/aws-fsx/lib/fsx-canned-metrics.generated.js")
        assert source
        known = set(re.findall(r'metricName:"(\w+)"', source.read().decode())) | {"AgeOfOldestQueuedMessage"}
    board = json.loads((FOLDER / "lustre.json").read_text())
    asked = [
        target for panel in board["panels"] for target in panel.get("targets", ()) if "metricName" in target
    ]
    assert len(asked) == 8
    assert {one["metricName"] for one in asked} <= known
    assert {one["namespace"] for one in asked} == {"AWS/FSx"}


def test_the_page_about_boards_names_them_all() -> None:
    page = (ROOT / "docs" / "dashboards.md").read_text()
    for name in NAMES:
        assert f"| {json.loads((FOLDER / f'{name}.json').read_text())['title']} |" in page


def test_rows_need_only_what_a_cluster_can_have() -> None:
    index = json.loads((FOLDER / "index.json").read_text())
    needs = {need for one in index.values() for need in one["rows"].values()}
    assert needs <= HAVES.keys() | {"all", "kueue"}


def test_a_picture_shows_the_nodes_that_stand_out_and_not_a_thousand() -> None:
    for name in NAMES:
        for panel in json.loads((FOLDER / f"{name}.json").read_text())["panels"]:
            for target in panel.get("targets", ()):
                if "{{node}}" in target.get("legendFormat", ""):
                    assert target["expr"].startswith(("topk(40, ", "bottomk(40, ")), (name, panel["title"])


def test_rows_without_panels_of_a_kind_are_left_out() -> None:
    slurm = boards(resolve(watched("prod")))
    assert "Kubernetes' view of the nodes" not in rows(slurm["health"])
    assert "Slurm's view of the nodes" in rows(slurm["health"])
    assert "Trainium" not in rows(slurm["health"])
    kubernetes = boards(resolve(watched("eks-p5en")))
    assert rows(kubernetes["queues"])[0] == "Kueue"
    assert "Slurm's view of the nodes" not in rows(kubernetes["health"])


@pytest.mark.parametrize("name", [one.stem for one in sorted((ROOT / "environments").glob("*.yaml"))])
def test_what_is_left_lies_without_gaps(name: str) -> None:
    for board in boards(resolve(watched(name))).values():
        for row, panel in zip(board["panels"], board["panels"][1:], strict=False):
            if row["type"] == "row" and panel["type"] != "row":
                assert panel["gridPos"]["y"] == row["gridPos"]["y"] + 1
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]}
        assert len(places) == len(board["panels"]), "no two at the same place"
        assert board["panels"][0]["gridPos"]["y"] == 0


def test_a_cluster_that_collects_nothing_of_ours_has_no_boards() -> None:
    assert boards(resolve(watched("dev", observability={"kind": "cloudwatch"}))) == {}


def test_a_deployed_board_names_its_own_data_sources_and_neighbours() -> None:
    cluster = resolve(watched("prod"))
    made = deployed(
        boards(cluster)["lustre"],
        "lustre",
        "prod",
        prometheus=("grafana-amazonprometheus-datasource", "prod-uc-metrics"),
        cloudwatch="prod-uc-cloudwatch",
    )
    text = json.dumps(made)
    assert "${prometheus}" not in text and "${cloudwatch}" not in text and "/d/ultracluster-" not in text
    assert '"type": "prometheus"' not in text
    assert "/d/prod-uc-health?" in text
    assert made["uid"] == "prod-uc-lustre" and made["links"][0]["tags"] == ["ultracluster-prod"]
    assert [one["name"] for one in made["templating"]["list"]] == [
        "cluster",
        "node_group",
        "node",
        "file_system",
    ]
    assert made["templating"]["list"][0]["current"]["value"] == cluster.cluster_name


def test_alerts_lead_to_runbooks_where_a_copy_can_be_opened() -> None:
    cluster = resolve(watched("prod"))
    url = "https://wiki.example.com/runbooks"
    assert f'"url": "{url}/${{__value.raw}}.md"' in json.dumps(boards(cluster, runbooks=f"{url}/")["health"])
    assert boards(cluster, runbooks="docs/runbooks") == boards(cluster)


def test_the_longest_name_of_an_environment_fits() -> None:
    assert all(len(uid("e" * 30, name)) <= MOST_LETTERS for name in NAMES)
    assert Path(FOLDER / "index.json").is_file()

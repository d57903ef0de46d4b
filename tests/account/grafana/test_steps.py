"""What differs in Grafana, and what a person made there."""

from __future__ import annotations

from typing import Any

import pytest
from fake_grafana import Grafana
from grafana_fixtures import Run
from json_contract import check_document


@pytest.mark.parametrize("newer", [True, False])
def test_a_board_that_a_person_saved_stays(fill: Run, there: Grafana, newer: bool) -> None:
    there.newer = newer
    fill("--yes")
    there.save("eks-p5en-uc-health", by="jane", title="Mine")
    result = fill("--yes")
    assert result.exit_code == 0
    assert (
        "keep a person's board Cluster health (eks-p5en): saved by jane at 2026-11-22 10:00" in result.stdout
    )
    assert "--overwrite replaces them" in result.stdout
    assert there.boards["eks-p5en-uc-health"]["dashboard"]["title"] == "Mine"

    replaced = fill("--yes", "--overwrite")
    assert (
        "update board Cluster health (eks-p5en): saved by jane at 2026-11-22 10:00: replaced"
        in replaced.stdout
    )
    assert there.boards["eks-p5en-uc-health"]["dashboard"]["title"] == "Cluster health (eks-p5en)"
    assert "nothing to do" in fill("--yes").stdout


def test_a_board_that_says_nothing_of_its_versions_counts_as_a_persons(fill: Run, there: Grafana) -> None:
    fill("--yes")
    there.fail = lambda method, path: (404, {}) if path.endswith("/versions") else None
    result = fill("--yes")
    assert "Grafana does not say who saved it last" in result.stdout


def test_another_version_of_ours_replaces_ours(fill: Run, there: Grafana) -> None:
    fill("--yes")
    board = there.boards["eks-p5en-uc-money"]
    board["dashboard"]["tags"] = ["ultracluster", "content-000000000000"]
    board["folder"] = ""  # moved to the general folder
    result = fill("--yes")
    assert "update board Money and goodput (eks-p5en)" in result.stdout
    assert board["folder"] == "", "where it lies is a person's choice"


def test_a_data_source_is_mended_and_what_a_person_chose_in_it_stays(fill: Run, there: Grafana) -> None:
    fill("--yes")
    source = there.sources["eks-p5en-uc-metrics"]
    source["isDefault"] = True
    source["jsonData"] |= {"sigV4Region": "eu-west-1", "exemplarTraceIdDestinations": []}
    result = fill("--yes")
    assert "sigV4Region: 'eu-west-1' becomes 'us-east-2'" in result.stdout
    mended = there.sources["eks-p5en-uc-metrics"]
    assert mended["isDefault"] is True
    assert (
        mended["jsonData"]["exemplarTraceIdDestinations"] == []
        and mended["jsonData"]["sigV4Region"] == "us-east-2"
    )


def test_a_board_saved_between_looking_and_doing_is_not_replaced(fill: Run, there: Grafana) -> None:
    fill("--yes")
    for board in there.boards.values():
        board["dashboard"]["tags"] = ["content-0"]
    uid = "eks-p5en-uc-job"

    def meanwhile(method: str, path: str) -> None:
        if (method, path) == ("POST", "/api/dashboards/db") and len(there.boards[uid]["versions"]) == 1:
            there.save(uid, by="jane", title="Mine")

    there.fail = meanwhile
    document = check_document(fill("--yes", "--json").stdout)
    failed = [row for row in document["rows"] if row["state"] == "failed"]
    assert [row["name"] for row in failed] == ["Job (eks-p5en)"]
    assert "somebody saved it after it was read" in failed[0]["details"][0]
    assert there.boards[uid]["dashboard"]["title"] == "Mine"
    assert [row["state"] for row in document["rows"] if row["kind"] == "board"].count("done") == 5


def test_a_data_source_of_that_name_is_not_taken_over(fill: Run, there: Grafana) -> None:
    there.sources["other"] = {"uid": "other", "name": "Ultracluster eks-p5en: metrics"}
    result = fill("--yes")
    assert result.exit_code == 1
    assert "data source with the same name already exists: rename or delete" in result.stdout


def test_a_board_that_a_person_saved_in_the_newer_form_stays(fill: Run, there: Grafana) -> None:
    """Grafana 13 answers the classic API with 406 for boards that were saved in its own form."""
    fill("--yes")
    uid = "eks-p5en-uc-health"
    said = {"message": "dashboard api version not supported, use /apis/dashboard.grafana.app/v2/ instead"}
    there.fail = lambda method, path: (406, said) if path == f"/api/dashboards/uid/{uid}" else None
    there.asked.clear()
    result = fill("--yes")
    assert result.exit_code == 0, result.output
    assert "board Cluster health (eks-p5en): saved by somebody in Grafana 13's own form" in result.stdout
    assert there.changes == []

    assert fill("--yes", "--overwrite").exit_code == 0
    assert there.changes == [("POST", "/api/dashboards/db")]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"dashboard": [], "meta": None},
        {"dashboard": {"version": "x", "tags": [1, None]}, "meta": {"folderUid": 3}},
        {"dashboard": {"tags": "content-1"}},
    ],
)
def test_a_board_that_makes_no_sense_is_a_persons(answer: dict[str, Any], fill: Run, there: Grafana) -> None:
    path = "/api/dashboards/uid/eks-p5en-uc-health"
    fill("--yes")
    there.save("eks-p5en-uc-health", by="\x1b[31mjane")
    there.fail = lambda method, asked: (200, answer) if asked == path else None
    result = fill("--yes")
    assert result.exit_code == 0, result.output
    assert "keep a person's board Cluster health" in result.stdout and "\x1b" not in result.stdout


def test_a_list_in_the_place_of_an_object_is_refused(fill: Run, there: Grafana) -> None:
    there.fail = lambda method, path: (200, [1]) if path.startswith("/api/folders") else None
    result = fill("--yes")
    assert result.exit_code == 2 and "answered something else than an object" in result.stderr

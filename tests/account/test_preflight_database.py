"""Whether RDS still offers the version that the accounting database is created with."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import answer, refusal
from preflight_account import NOW, World
from project import ROOT

from ultracluster.account.preflight import Row, database
from ultracluster.account.preflight.rows import Situation
from ultracluster.config import load
from ultracluster.model import resolve

WHAT = "version of the database"


def rows(
    *offered: str, name: str = "parallelcluster-p5", resources: list[dict[str, Any]] | None = None
) -> list[Row]:
    """The rows where RDS lists these versions, and the storage stack has these resources or is not there."""
    world = World(load(ROOT / "environments" / f"{name}.yaml").environment)
    account, world.mysql = world.account, list(offered)

    def of_the_stack(asked: dict[str, Any]) -> dict[str, Any]:
        stack = asked["StackName"]
        if resources is None:
            raise refusal("ValidationError", f"Stack with id {stack} does not exist")
        return {"StackResourceSummaries": resources}

    answer(account.client("cloudformation"), "ListStackResources", of_the_stack)
    situation = Situation(account, resolve(world.environment), lambda: NOW)
    return [row for question in database.questions(situation) for row in question.answer()]


def test_a_version_that_rds_has_is_green_and_names_the_newest() -> None:
    assert rows("8.4.9", "8.4.10", "8.4.11") == [Row(WHAT, "green", "MySQL 8.4.10, the newest is 8.4.11")]


@pytest.mark.parametrize(
    ("offered", "nearest"),
    [(("8.4.12", "8.4.11", "8.4.100"), "8.4.11"), (("8.4.8", "8.4.9"), "8.4.9")],
)
def test_a_retired_version_stops_a_first_deploy_and_names_the_nearest(
    offered: tuple[str, ...], nearest: str
) -> None:
    (row,) = rows(*offered)
    assert row.level == "red" and "does not offer MySQL 8.4.10 any more" in row.found
    assert row.do == f'write `storage.accounting_database.engine_version: "{nearest}"`'


def database_is(status: str) -> list[dict[str, Any]]:
    always = {"LogicalResourceId": "Accounting", "LastUpdatedTimestamp": NOW}
    return [
        {**always, "ResourceType": "AWS::EC2::SecurityGroup", "ResourceStatus": "CREATE_COMPLETE"},
        {**always, "ResourceType": "AWS::RDS::DBInstance", "ResourceStatus": status},
    ]


@pytest.mark.parametrize(
    ("resources", "level"),
    [
        (database_is("CREATE_COMPLETE"), "green"),
        (database_is("UPDATE_COMPLETE"), "green"),
        (database_is("CREATE_FAILED"), "red"),
        (database_is("CREATE_COMPLETE")[:1], "red"),
    ],
)
def test_an_instance_that_is_there_is_raised_by_rds(resources: list[dict[str, Any]], level: str) -> None:
    (row,) = rows("8.4.11", resources=resources)
    assert row.level == level


def test_no_list_is_not_known() -> None:
    (row,) = rows()
    assert row.level == "unknown" and not row.do


def test_an_environment_without_such_a_database_asks_nothing() -> None:
    assert rows("8.4.11", name="dev") == []

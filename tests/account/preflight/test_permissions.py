"""What preflight asks IAM about: the actions of a deploy, of every shipped environment."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.session import Session
from kubernetes_support import environment
from preflight_account import OWNER, World, ask, furnish, shipped
from project import ENVIRONMENTS, ROOT
from templates import templates_alone
from watching import watched

from ultracluster.account.preflight import permissions
from ultracluster.account.preflight.permissions import deploy_actions, principal
from ultracluster.model import resolve

pytestmark = pytest.mark.usefixtures("aws_account")


@pytest.fixture
def world() -> World:
    world = World(shipped("dev", account=OWNER))
    furnish(world)
    return world


def test_missing_permissions_are_named(world: World) -> None:
    world.denied = {"sts:AssumeRole", "fsx:CreateFileSystem"}
    rows = ask(permissions, world)
    assert rows["fsx:CreateFileSystem"].level == "red"
    assumed = [what for what in rows if what.startswith("sts:AssumeRole cdk-hnb659fds-deploy-role")]
    assert assumed and rows[assumed[0]].level == "red"
    asked = [asked for name, asked in world.asked if name == "SimulatePrincipalPolicy"]
    # the role itself with its path, not the session
    assert asked[0]["PolicySourceArn"] == f"arn:aws:iam::{OWNER}:role/people/operator"
    assert all(len(one["ActionNames"]) <= 50 for one in asked)


@pytest.mark.parametrize(
    ("arn", "wanted"),
    [
        ("arn:aws:sts::1:assumed-role/operator/me", "arn:aws:iam::1:role/operator"),
        ("arn:aws-us-gov:sts::1:assumed-role/operator/me@x", "arn:aws-us-gov:iam::1:role/operator"),
        ("arn:aws:iam::1:user/team/me", "arn:aws:iam::1:user/team/me"),
    ],
)
def test_a_session_is_simulated_as_its_role(arn: str, wanted: str) -> None:
    assert principal(arn) == wanted


SNAPSHOTS = ROOT / "tests" / "stacks" / "__snapshots__" / "test_environments"


REVIEWED = sorted(
    file.stem.partition("[")[2][:-1] for file in SNAPSHOTS.glob("test_templates_are_as_reviewed*.json")
)


@pytest.mark.parametrize("name", [name for name in REVIEWED if name in ENVIRONMENTS])
def test_the_actions_cover_every_resource_of_the_stacks(name: str) -> None:
    known = json.loads((ROOT / "constructs/ultracluster/catalog/deploy_actions.json").read_text())["actions"]
    stacks = json.loads((SNAPSHOTS / f"test_templates_are_as_reviewed[{name}].json").read_text())
    types = {row["Type"] for stack in stacks.values() for row in stack["Resources"].values()}
    actions = {row["action"] for row in known if row["type"] in types}
    ours = {kind for kind in types if not kind.startswith("Custom::")}
    assert ours <= {row["type"] for row in known}
    assert actions <= set(deploy_actions(resolve(shipped(name))))


def test_what_watches_is_made_with_actions_of_its_own() -> None:

    actions = json.loads((ROOT / "constructs/ultracluster/catalog/deploy_actions.json").read_text())[
        "actions"
    ]
    for name in ("dev", "pcs-p6-b200"):
        cluster = watched(name)
        made = templates_alone(cluster.environment)
        types = {resource["Type"] for stack in made.values() for resource in stack["Resources"].values()}
        assert {kind for kind in types if not kind.startswith("Custom::")} <= {row["type"] for row in actions}
        asked = set(deploy_actions(cluster))
        assert {row["action"] for row in actions if row["type"] in types} <= asked
        without = cluster.environment.model_copy(update={"observability": None})
        assert asked - set(deploy_actions(resolve(without))) >= {
            "events:PutRule",
            "cloudwatch:PutMetricAlarm",
        }


def test_only_awss_own_collector_asks_for_the_right_to_make_one() -> None:

    for collector in ("agent", "managed"):
        wanted = {"observability": {"kind": "prometheus", "collector": collector}}
        asked = set(deploy_actions(resolve(environment(wanted))))
        assert ("aps:CreateScraper" in asked) is (collector == "managed")


def test_the_actions_are_operations() -> None:

    actions = json.loads((ROOT / "constructs/ultracluster/catalog/deploy_actions.json").read_text())[
        "actions"
    ]
    session = Session()
    renamed = {"lambda:InvokeFunction": "Invoke", "budgets:ModifyBudget": "CreateBudget"}
    permissions_alone = {"iam:PassRole", "pcs:AllowVendedLogDeliveryForResource"}
    for row in actions:
        operations: Any
        service, _, operation = row["action"].partition(":")
        if row["action"] not in permissions_alone:
            operations = session.get_service_model({"aps": "amp"}.get(service, service)).operation_names
            assert renamed.get(row["action"], operation) in operations

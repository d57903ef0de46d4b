"""VPC endpoints: which a closed network needs, and how many addresses they take."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.addresses import Row, address_budget
from ultracluster.model.endpoints import made_endpoints, words_of

DEV = environment_data()


def environment(changes: dict[str, Any]) -> Environment:
    return loaded(changed(DEV, copy.deepcopy(changes))).environment


def rows(changes: dict[str, Any]) -> dict[str, Row]:
    return {row.what: row for row in address_budget(resolve(environment(changes))).rows}


def test_interface_endpoints_take_one_each_and_gateways_none() -> None:
    assert "interface endpoints" not in rows({})
    closed = {"network.egress": "closed"}
    made = made_endpoints(resolve(environment(closed)))
    assert rows(closed)["interface endpoints"].total == len(made) - 1
    elsewhere = {**closed, "network.vpc": {"id": "vpc-01234567", "cidr": "10.0.0.0/16"}}
    assert "interface endpoints" not in rows(elsewhere)


def services(kind: str) -> set[str]:
    closed = {"orchestrator": {"kind": kind}, "network.egress": "closed"}
    return {endpoint.service for endpoint in made_endpoints(resolve(environment(closed)))}


def test_endpoints_of_a_closed_network_follow_the_orchestrator() -> None:
    everyone = services("hyperpod-slurm") - {"sagemaker.api"}
    assert services("hyperpod-slurm") - everyone == {"sagemaker.api"}
    assert services("parallelcluster") - everyone == {
        "dynamodb", "cloudformation", "elasticloadbalancing", "autoscaling",
    }  # fmt: skip
    assert services("pcs") - everyone == {"pcs"}
    assert services("eks") - everyone == {
        "eks", "eks-auth", "elasticloadbalancing", "lambda", "autoscaling",
    }  # fmt: skip
    assert services("hyperpod-eks") == services("eks") | {"sagemaker.api"}


DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_address": "ldaps://corp.example.com",
    "password_secret_arn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:reader",
    "read_only_user": "cn=reader,dc=corp,dc=example,dc=com",
}
WORKSPACE = {"workspace_arn": "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678"}


@pytest.mark.parametrize(
    ("kind", "setting", "service"),
    [
        ("parallelcluster", {"orchestrator.directory_service": DIRECTORY}, "secretsmanager"),
        ("hyperpod-eks", {"orchestrator.observability": WORKSPACE}, "aps-workspaces"),
    ],
)
def test_what_a_setting_lets_nodes_ask_for_has_an_endpoint(
    kind: str, setting: dict[str, Any], service: str
) -> None:
    closed = {"orchestrator": {"kind": kind}, "network.egress": "closed"}
    made = made_endpoints(resolve(environment({**closed, **setting})))

    assert service not in services(kind)
    assert service in {endpoint.service for endpoint in made}


@pytest.mark.parametrize(("percent", "pulled"), [(20, True), (0, False), (None, False)])
def test_the_daemon_of_tiered_checkpoints_is_pulled_from_accounts_that_nobody_names(
    percent: int | None, pulled: bool
) -> None:
    alone = {
        "orchestrator.training_operator": False,
        "orchestrator.tiered_checkpoints_percent": percent,
        "observability": ...,
    }
    cluster = resolve(loaded(changed(environment_data("hyperpod-eks-p5"), alone)).environment)

    assert ("hyperpod-addons" in words_of(cluster)) is pulled

"""VPC endpoints: which a closed network needs, and how many addresses they take."""

from __future__ import annotations

import copy
from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.addresses import Row, address_budget
from ultracluster.model.endpoints import made_endpoints

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
    assert services("parallelcluster") - everyone == {"dynamodb", "cloudformation"}
    assert services("pcs") - everyone == {"pcs"}
    assert services("eks") - everyone == {
        "eks", "eks-auth", "elasticloadbalancing", "lambda", "autoscaling",
    }  # fmt: skip
    assert services("hyperpod-eks") == services("eks") | {"sagemaker.api"}

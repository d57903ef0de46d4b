"""Nodes of one role may do what docs/security.md says, in every environment that is shipped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from node_rights import of_cluster, rights_of_nodes
from project import ENVIRONMENTS, ROOT, SHIPPED, environments_of
from templates import Synthesised, many

from ultracluster.config import Environment, load

Get = Callable[[str], Synthesised]
COLUMNS = ("hyperpod-slurm", "hyperpod-eks", "parallelcluster", "pcs", "eks")
HYPERPOD = [*environments_of("hyperpod-slurm"), *environments_of("hyperpod-eks")]


def environment(name: str) -> Environment:
    return load(ROOT / "environments" / f"{name}.yaml").environment


def documented() -> dict[str, dict[str, str]]:
    """Cells of the table by orchestrator by statement id: `all`, roles of nodes, or `-`."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.partition("## Roles of nodes\n")[2].partition("\n## ")[0]
    table: dict[str, dict[str, str]] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        sids = re.findall(r"`(\w+)`", cells[-1]) if line.startswith("|") else []
        for sid in sids:
            table[sid] = dict(zip(COLUMNS, cells[1:-1], strict=True))
    return table


TABLE = documented()


def may(cell: str, roles: set[str]) -> set[str]:
    """The roles of an environment's nodes that a cell names."""
    return roles if cell == "all" else set() if cell == "-" else set(cell.split(", ")) & roles


@pytest.mark.parametrize("name", SHIPPED)
def test_each_role_of_node_may_do_what_the_page_says(name: str, synthesised: Get) -> None:
    asked = environment(name)
    rights = rights_of_nodes(synthesised(name), asked)
    roles = {group.role for group in asked.node_groups.values()}
    assert rights.keys() == roles
    found = {sid for statements in rights.values() for sid in (one["Sid"] for one in statements)}

    assert found <= TABLE.keys(), "say in docs/security.md which roles of nodes have these"
    for sid in found:
        holders = {role for role, statements in rights.items() if any(s["Sid"] == sid for s in statements)}
        assert holders == may(TABLE[sid][asked.orchestrator.kind], roles), sid


def test_the_page_names_no_right_that_nobody_has(synthesised: Get) -> None:
    found = {
        (environment(name).orchestrator.kind, statement["Sid"])
        for name in SHIPPED
        for statements in rights_of_nodes(synthesised(name), environment(name)).values()
        for statement in statements
    }
    said = {(kind, sid) for sid, cells in TABLE.items() for kind, cell in cells.items() if cell != "-"}

    # no shipped environment of these has a mirror, buckets for jobs (test_job_role), or is watched
    # (tests/observability/test_backend.py)
    elsewhere = {"ListMirror", "ReadMirror", "AssumeJobRole", "SendMetrics", "AssumeMetricsWriter"}
    assert {sid for _, sid in said - found} <= elsewhere
    assert not found - said


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_only_where_slurmdbd_runs_is_a_secret_read(name: str, synthesised: Get) -> None:
    for role, statements in rights_of_nodes(synthesised(name), environment(name)).items():
        for statement in statements:
            secret = "secretsmanager:GetSecretValue" in many(statement["Action"])
            through = "secretsmanager." in str(statement.get("Condition", ""))
            assert role == "controller" or not (secret or through), statement


def interfaces(name: str, made: Synthesised) -> Iterator[dict[str, Any]]:
    for statements in rights_of_nodes(made, environment(name)).values():
        for statement in statements:
            if any("NetworkInterface" in a and "Describe" not in a for a in many(statement["Action"])):
                yield statement


@pytest.mark.parametrize("name", HYPERPOD)
def test_interfaces_are_made_and_shared_in_the_nodes_subnet_only(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    (told,) = [properties["VpcConfig"] for _, properties in of_cluster(made, "AWS::SageMaker::Cluster")]
    allowed = [str(one) for one in (*told["Subnets"], *told["SecurityGroupIds"])]
    found = list(interfaces(name, made))
    assert found
    for statement in found:
        for resource in many(statement["Resource"]):
            text = str(resource)
            if ":subnet/" in text or ":security-group/" in text:
                assert any(one in text for one in allowed), text
        (operator,) = statement["Condition"]
        shares = "ec2:CreateNetworkInterfacePermission" in many(statement["Action"])
        # with a key that is missing, the former is not allowed, the latter is
        assert operator == ("ArnLike" if shares else "ArnLikeIfExists"), statement
        assert str(told["Subnets"][0]) in str(statement["Condition"][operator]["ec2:Subnet"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nodes_read_all_scripts_of_their_cluster(name: str, synthesised: Get) -> None:
    """Older ones as well: a node that starts while an update runs asks for the former folder."""
    asked = environment(name)
    for role, statements in rights_of_nodes(synthesised(name), asked).items():
        reading = [one for one in statements if one["Sid"] == "ReadScripts"]
        assert bool(reading) == (role != "system"), role
        for statement in reading:
            text = str(statement["Resource"])
            # EKS's nodes read one file by its content, from the CDK's own bucket
            assert f"/{asked.cluster_name}/*" in text or asked.orchestrator.kind == "eks", text

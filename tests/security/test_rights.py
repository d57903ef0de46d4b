"""Rights by allow-list: what a role may do has a row, a row is in some template, and something needs it."""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from iam_proof.allow_list import FOLDER, AllowList, Names, Row, names_of_file, needs, rows
from iam_proof.environments import EVERY, config_of
from iam_proof.rights import Right, in_words, right_of, rights_of
from iam_proof.scripts import actions_in
from iam_proof.world import POLICIES
from moto.iam.aws_managed_policies import aws_managed_policies_data
from project import ROOT
from rows import for_each
from templates import many, synthesise

from ultracluster.clusters.hyperpod import inference

ROWS = rows()
NEEDS = needs()
OF_IMAGES = "images.yaml"
"""Its rows are about no environment: tests/lifecycle/test_image_pipeline.py."""
SEEDS: dict[str, str] = yaml.safe_load((FOLDER.parent / "seeds.yaml").read_text(encoding="utf-8"))["seeds"]
REASONS = [
    (part, one) for part, rights in inference._rights().items() for one in rights.get("statements", ())
]
Templates = dict[str, Any]
Get = Callable[[str], Templates]


@pytest.fixture(scope="session")
def held(templates_of: Get) -> Callable[[str], tuple[list[Right], Names]]:
    """Gives what roles of an environment may do, and what rows' words mean there."""
    return cache(lambda name: of(name, templates_of(name)))


Held = Callable[[str], tuple[list[Right], Names]]


def of(name: str, templates: Templates) -> tuple[list[Right], Names]:
    config = config_of(name)
    return rights_of(in_words(config, templates)), names_of_file(config)


@pytest.mark.parametrize("name", EVERY)
def test_each_right_has_a_row(name: str, held: Held) -> None:
    assert AllowList(ROWS).findings(*held(name)) == []


@pytest.mark.parametrize("name", EVERY)
def test_nothing_else_gives_rights(name: str, templates_of: Get) -> None:
    """Users, groups, and policies of other types, of which nobody here reads the statements."""
    read = {*POLICIES, "AWS::IAM::InstanceProfile", "AWS::IAM::OIDCProvider"}
    types = {
        one["Type"] for template in templates_of(name).values() for one in template["Resources"].values()
    }

    assert {one for one in types if one.startswith(("AWS::IAM::", "AWS::SSO::"))} <= read


def test_each_part_of_a_row_is_in_some_template(held: Held) -> None:
    asked = AllowList(ROWS)
    for name in EVERY:
        asked.findings(*held(name))

    assert asked.unused(row for row in ROWS if row.file != OF_IMAGES) == []


def test_a_row_that_nothing_uses_is_found(held: Held) -> None:
    row = next(one for one in ROWS if one.sid == "Targets")
    asked = AllowList(ROWS)
    asked.findings(*held("prod"))

    assert f"{row}: no template has elasticloadbalancing:RegisterTargets" in asked.unused([row])


# What needs a right


def test_each_need_is_named_and_of_one_kind() -> None:
    named = {need for row in ROWS for need in row.need}

    assert named == NEEDS.keys()
    for name, one in NEEDS.items():
        assert one.keys() - {"calls"} in ({"policy"}, {"source", "date"}, {"file"}, {"setting"}), name
        assert "date" not in one or dt.date.fromisoformat(one["date"]), name
    settings = {field for file in EVERY for field in names_of_file(config_of(file))}
    for one in NEEDS.values():
        assert "setting" not in one or any(f".{one['setting']}." in f".{field[5:]}." for field in settings), (
            one
        )


@cache
def managed(policy: str) -> tuple[str, ...]:
    """Actions of a managed policy of AWS, as moto's copy of IAM has them, in lower case."""
    document = json.loads(aws_managed_policies_data)[policy]["Document"]
    statements = [one for one in many(document["Statement"]) if one["Effect"] == "Allow"]
    return tuple(action.lower() for one in statements for action in many(one["Action"]))


@cache
def called(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def explains(need: dict[str, Any], action: str) -> bool:
    """Whether what is named under `need` calls, or has, an action; pages and settings are believed."""
    if "policy" in need:
        return any(fnmatchcase(action.lower(), one) for one in managed(need["policy"]))
    if "file" not in need:
        return True
    text = called(need["file"])
    if action in actions_in(text):
        return True
    verb = action.partition(":")[2]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", verb)
    forms = {verb[0].lower() + verb[1:], "_".join(words).lower(), "-".join(words).lower()}
    said = need.get("calls", {}).get(action)
    return said in text if said else any(re.search(rf"\b{form}\b", text) for form in forms)


@for_each("row", ROWS, ids=str)
def test_each_action_of_a_row_is_needed(row: Row) -> None:
    assert not [one for one in row.actions if not any(explains(NEEDS[need], one) for need in row.need)]


def test_a_need_that_does_not_call_is_found() -> None:
    assert not explains({"policy": "AmazonEKS_CNI_Policy"}, "ec2:RunInstances")
    assert not explains({"file": "lifecycle_scripts/files/from_s3.sh"}, "s3:PutObject")
    assert explains({"file": "lifecycle_scripts/files/topology_update.py"}, "ec2:DescribeInstanceTopology")


@pytest.mark.parametrize("one", [pytest.param(one, id=f"{part}: {one['sid']}") for part, one in REASONS])
def test_a_reason_in_the_file_of_rights_is_true(one: dict[str, Any]) -> None:
    """What says `read-only` reads, what says `only` is bound, and what is bound by nothing else says why."""
    reads = ("Describe", "Get", "List", "BatchGet")
    why, verbs = one.get("why", ""), [action.partition(":")[2] for action in one["actions"]]
    bound = one.get("conditions") or all("{" in resource for resource in one["resources"])

    assert "read-only" not in why or all(verb.startswith(reads) for verb in verbs)
    assert not re.search(r"(?<!-)\bonly\b", why, re.IGNORECASE) or "read-only" in why or bound
    wide = any(resource.endswith("*") and resource != "*" for resource in one["resources"])
    assert why or not wide


# Seeds: rights that nobody has


def statements(resource: str | None) -> Iterator[dict[str, Any]]:
    """Each seed as a statement, on everything or on what is somebody else's."""
    for action, foreign in SEEDS.items():
        sid = re.sub(r"\W", "", f"Seed{action}")
        yield {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource or foreign}


def test_there_are_enough_seeds_and_one_for_each_service() -> None:
    served = {action.partition(":")[0] for row in ROWS for action in row.actions}
    # of these roles read only, or a channel of their own that has no ARN
    exempt = {"ec2messages", "ecr-public", "eks-auth", "pricing", "shield", "ssmmessages", "wafv2"}

    assert len(SEEDS) >= 64
    assert served - exempt <= {action.partition(":")[0] for action in SEEDS}


@pytest.mark.parametrize("resource", ["*", None], ids=["on everything", "on another's"])
@pytest.mark.parametrize("name", EVERY)
def test_each_seed_in_each_role_is_found(
    name: str, resource: str | None, templates_of: Get, held: Held
) -> None:
    """Seeded into the templates, so that a role whose policies nobody reads would be found, too."""
    templates = copy.deepcopy(templates_of(name))
    seeded = 0
    for template in templates.values():
        for one in template["Resources"].values():
            if one["Type"] in POLICIES:
                seeded += seed(one["Properties"], list(statements(resource)))
    rights, names = of(name, templates)
    # those that a resource's policy means have no policy of their own in a template
    roles = {one.role for one in held(name)[0]} - {"anybody"}
    found = {(one.role, one.sid) for one in rights if AllowList(ROWS).findings([one], names)}

    assert seeded
    assert found == {(role, one["Sid"]) for role in roles for one in statements(resource)}


def seed(properties: dict[str, Any], more: list[dict[str, Any]]) -> int:
    documents = [one["PolicyDocument"] for one in properties.get("Policies", [])]
    documents += [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
    for document in documents:
        document["Statement"] = [*many(document["Statement"]), *more]
    return len(documents)


@pytest.mark.parametrize("name", EVERY)
def test_rights_of_each_role_are_read(name: str, held: Held, templates_of: Get) -> None:
    world = in_words(config_of(name), templates_of(name))

    assert {arn.rpartition("/")[2] for arn in world.roles} <= {one.itself for one in held(name)[0]}


def test_statements_that_say_what_not_are_found() -> None:
    for odd in ({"NotAction": "iam:*", "Resource": "*"}, {"Action": "s3:GetObject", "NotResource": "arn:x"}):
        right = right_of({"Sid": "Odd", "Effect": "Allow", **odd})
        assert "no row can allow it" in AllowList(ROWS).findings([right], {})[0]


def test_a_right_without_its_condition_is_found(held: Held) -> None:
    rights, names = held("environments/wishes/inference.yaml")
    without = [
        Right(**{**{key: getattr(one, key) for key in one.__slots__}, "conditions": {}})
        for one in rights
        if one.conditions
    ]

    assert len(without) > 20
    for one in without:
        assert AllowList(ROWS).findings([one], names), one


def test_a_statement_more_in_the_file_of_rights_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: None
) -> None:
    """Of the operator, the load balancer controller and KEDA; with a reason, as the others have one."""
    rights = copy.deepcopy(dict(inference._rights()))
    actions = ["iam:AttachRolePolicy", "iam:PassRole", "sts:AssumeRole", "secretsmanager:GetSecretValue"]
    resources = [
        "arn:{partition}:iam::{account}:role/*",
        "arn:{partition}:secretsmanager:{region}:{account}:secret:*",
    ]
    for part in ("operator", "load_balancer", "autoscaler"):
        more = {"sid": "More", "actions": actions, "resources": resources, "why": "Needed by the operator."}
        rights[part]["statements"].append(more)
    monkeypatch.setattr(inference, "_rights", lambda: rights)
    name = "environments/wishes/inference.yaml"

    made = synthesise(config_of(name), tmp_path, validate=False, nag=False)

    found = AllowList(ROWS).findings(*of(name, made.templates))
    assert {one.split()[0] for one in found} == {
        "workloads/AddonsInferenceAutoscalerRole",
        "workloads/AddonsInferenceLoadBalancerRole",
        "workloads/AddonsInferenceOperatorRole",
    }
    assert len(found) == 3 * len(actions) * len(resources)

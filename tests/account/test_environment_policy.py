"""Policies for one environment: every action is decided on, and nothing of another environment is in them."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import boto3
import pytest
import typer
from kubernetes_support import environment
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner

from ultracluster.account.environment_policy import Deployed, environment_policy, instance_tags, rows_for
from ultracluster.cli import environment_rights
from ultracluster.cli import permissions as command
from ultracluster.config.session_user import IMAGE_USERS
from ultracluster.model import resolve

DOCUMENT = json.loads((ROOT / "constructs/ultracluster/account/permissions.json").read_text())
GROUPS = (*DOCUMENT["policies"], "people")
ACTIONS = {group: environment_rights.actions_of(DOCUMENT, group) for group in GROUPS}
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"


@cache
def statements(name: str, *groups: str, deployed: Deployed | None = None) -> list[dict[str, Any]]:
    cluster = resolve(environment({"account": "111122223333"}, base=name))
    return environment_policy(cluster, {group: ACTIONS[group] for group in groups}, deployed)


def allowed(name: str, *groups: str) -> set[str]:
    return {action for statement in statements(name, *groups) for action in statement["Action"]}


@pytest.mark.parametrize("group", ["act", "mirror"])
def test_every_action_that_changes_something_is_decided_on(group: str) -> None:
    assert [action for action in ACTIONS[group] if not rows_for(action)] == []


@pytest.mark.parametrize(("grafana", "resource", "by_tag"), [
    ({"workspace_id": "g-0123456789"}, "/workspaces/g-0123456789", False),
    ({}, "/workspaces/*", True),
])  # fmt: skip
def test_only_the_environments_own_grafana_is_filled(
    grafana: dict[str, str], resource: str, by_tag: bool
) -> None:
    cluster = resolve(environment({"observability": {"grafana": grafana}}, base="eks-p5en"))
    policy = environment_policy(cluster, {"act": ACTIONS["act"]}, Deployed(account="111122223333"))
    own = [one for one in policy if "grafana:UpdatePermissions" in one["Action"]]
    assert own
    for one in own:
        assert one["Resource"] == [f"arn:aws:grafana:us-east-2:111122223333:{resource}"]
        assert ("aws:ResourceTag" in json.dumps(one.get("Condition", {}))) is by_tag
    without = resolve(environment({}, base="eks-p5en"))
    assert "grafana" not in json.dumps(
        environment_policy(without, {"act": ACTIONS["act"]}, Deployed(account="1"))
    )


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_acting_is_limited_to_the_environment(name: str) -> None:
    """By a tag, the name of a stack, the session's own tag, or a document; never on everything."""
    cluster = resolve(environment({}, base=name))
    for statement in statements(
        name, "act", "mirror", deployed=Deployed(account="111122223333", cluster_arn=ARN)
    ):
        assert "*" not in statement["Resource"]
        for arn in statement["Resource"]:
            assert ":*:" not in arn
            if re.search(r"(instance|session|key|extension|workspaces)/\*$", arn):
                assert "/" in json.dumps(statement["Condition"]), statement
            elif arn == ARN:
                assert cluster.traits.hyperpod
            elif "servicequotas" not in arn and "::document/AWS-" not in arn:
                assert re.search(rf"[:/]{cluster.name}-|{cluster.cluster_name}", arn) or ":s3:::" in arn, arn


def test_the_extension_of_another_environment_is_left_alone() -> None:
    (one,) = (
        statement
        for statement in statements("dev", "act", deployed=Deployed(account="111122223333", cluster_arn=ARN))
        if "sagemaker:AddTags" in statement["Action"]
    )
    tag = "ultracluster:environment"
    assert one["Condition"]["StringEqualsIfExists"] == {
        f"aws:ResourceTag/{tag}": "dev",
        f"aws:RequestTag/{tag}": "dev",
    }
    assert all(arn.endswith(":extension/*") for arn in one["Resource"])
    for name in ("pcs-p6-b200", "hyperpod-eks-p5"):
        assert "sagemaker:AddTags" not in allowed(name, "act")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_reading_is_limited_to_the_region(name: str) -> None:
    world = {
        "iam:GetPolicy",
        "iam:GetRole",
        "iam:GetUser",
        "iam:SimulatePrincipalPolicy",
        "pricing:GetProducts",
        "savingsplans:DescribeSavingsPlansOfferingRates",
    }
    market = {  # `capacity search --everywhere`: what is on offer, and what of it the account holds
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeCapacityBlockOfferings",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeRegions",
        "sagemaker:ListTrainingPlans",
        "sagemaker:SearchTrainingPlanOfferings",
    }
    region = resolve(environment({}, base=name)).region
    for statement in statements(name, "read"):
        if statement["Resource"] == ["*"] and not set(statement["Action"]) <= world | market:
            assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": region}}
    assert world | market <= allowed(name, "read") <= set(ACTIONS["read"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_buying_is_for_the_environment_and_by_those_who_ask_for_the_group(name: str) -> None:
    cluster = resolve(environment({}, base=name))
    made = statements(name, "buy")
    arn = f"{cluster.region}:111122223333"
    plans = [
        f"arn:aws:sagemaker:{arn}:{kind}"
        for kind in ("reserved-capacity/*", f"training-plan/{cluster.name}-*")
    ]
    blocks = [f"arn:aws:ec2:{arn}:capacity-reservation/*"]
    assert {action: one["Resource"] for one in made for action in one["Action"]} == (
        {"sagemaker:CreateReservedCapacity": plans, "sagemaker:CreateTrainingPlan": plans}
        if cluster.traits.hyperpod
        else {"ec2:PurchaseCapacityBlock": blocks}
    )
    others = allowed(name, "read", "act", "deploy", "mirror", "people")
    assert not others & {"ec2:PurchaseCapacityBlock", *ACTIONS["buy"]}
    assert not [
        action for action in others if re.search("Purchase|CreateTrainingPlan|ReservedCapacity", action)
    ]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_people_get_a_session_as_the_ordinary_user_only(name: str) -> None:
    made = statements(name, "people")
    documents = [arn for one in made for arn in one["Resource"] if ":document/" in arn]

    assert not [
        action for action in allowed(name, "people") if re.search("Send|Reboot|Terminate[IC]|Batch", action)
    ]
    assert documents and not [arn for arn in documents if "Admin" in arn or "AWS-" in arn]
    for one in made:
        nodes = [arn for arn in one["Resource"] if "instance/" in arn or ":cluster/" in arn]
        if nodes and "ssm:StartSession" in one["Action"]:
            assert one["Condition"]["BoolIfExists"] == {"ssm:SessionDocumentAccessCheck": "true"}


@pytest.mark.parametrize("group", ["act", "people"])
def test_whoever_starts_a_session_may_open_its_channel(group: str) -> None:
    """The plugin signs that request since 1.2.764.0, and AWS's sample policies allow it."""
    (found,) = [one for one in statements("prod", group) if "ssmmessages:OpenDataChannel" in one["Action"]]
    assert found["Action"] == ["ssmmessages:OpenDataChannel"]
    (arn,) = found["Resource"]
    assert re.fullmatch(r"arn:aws:ssm:us-east-2:[^:]+:session/\*", arn)
    tag = "ssm:resourceTag/aws:ssmmessages:session-id"
    assert found["Condition"]["StringLikeIfExists"] == {tag: "${aws:userid}"}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_people_find_the_kubernetes_api_of_their_cluster_only(name: str) -> None:
    """Which `job` asks for; what they may do there is Kubernetes' to say."""
    resources = [
        statement["Resource"]
        for statement in statements(name, "people")
        if "eks:DescribeCluster" in statement["Action"]
    ]
    kubernetes = name.startswith(("eks", "hyperpod-eks"))
    assert len(resources) == kubernetes
    assert all(
        len(arns) == 1 and re.fullmatch(r"arn:aws:eks:.*:cluster/[^*]+", arns[0]) for arns in resources
    )


def test_a_tag_of_the_caller_makes_nobody_the_images_user() -> None:
    """SSM logs in as the user in the caller's tag `SSMSessionRunAs`, before it looks at the document."""
    (documents,) = [
        statement for statement in statements("prod", "people") if ":document/" in statement["Resource"][0]
    ]
    refused = documents["Condition"]["StringNotEqualsIfExists"]["aws:PrincipalTag/SSMSessionRunAs"]

    assert {"root", "ssm-user", *IMAGE_USERS} <= set(refused)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_iam_takes_them(name: str, aws_account: None) -> None:
    """Each group fits into a managed policy, and moto's validator of IAM's grammar has nothing against it."""
    iam = boto3.client("iam", "us-east-1")
    for group in ACTIONS:
        allowed = statements(name, group)
        if not allowed:
            assert group == "mirror"
            continue
        text = json.dumps({"Version": "2012-10-17", "Statement": allowed}, separators=(",", ":"))
        assert len(text) <= environment_rights.LONGEST, group
        iam.create_policy(PolicyName=group, PolicyDocument=text)


def test_names_that_begin_alike_are_not_mixed_up() -> None:
    """`prod` has no right on the stacks of `prod-eu`."""
    arns = [
        arn
        for statement in statements("prod", "read", "act")
        for arn in statement["Resource"]
        if ":stack/" in arn
    ]

    assert arns and all(
        re.fullmatch(r"arn:aws:cloudformation:[^*]+:stack/prod-[a-z-]+/\*", arn) for arn in arns
    )


def test_logs_of_a_neighbour_are_not_read() -> None:
    name = "parallelcluster-p5"
    groups = [
        arn for statement in statements(name, "read") for arn in statement["Resource"] if ":log-group:" in arn
    ]
    place = f"arn:aws:logs:us-east-2:111122223333:log-group:/aws/parallelcluster/{name}"
    region = resolve(environment({}, base=name)).region
    place = place.replace("us-east-2", region)

    def passes(arn: str) -> bool:
        return any(fnmatchcase(arn, pattern) for pattern in groups)

    assert passes(f"{place}-202611221530:*") and passes(f"{place}-202611221530:log-stream:ip-10-0-0-1.i-1")
    assert not passes(f"{place}-eu-202611221530:*") and not passes(f"{place}2-202611221530:*")


@pytest.mark.parametrize("base", ["prod", "hyperpod-eks-p5"])
def test_the_cluster_is_named_once_it_is_known(base: str) -> None:
    deployed = Deployed(account="111122223333", cluster_arn=ARN)
    clusters = {
        arn
        for statement in statements(base, "act", deployed=deployed)
        for arn in statement["Resource"]
        if "cluster/" in arn
    }

    assert clusters == {ARN}


def test_tags_are_those_by_which_nodes_are_found() -> None:
    assert instance_tags(resolve(environment({}, base="prod"))) == ()
    assert instance_tags(resolve(environment({}, base="eks-p5en")))[0] == ("eks:cluster-name", "eks-p5en")
    assert instance_tags(resolve(environment({}, base="pcs-p6-b200"))) == (
        ("ultracluster:environment", "pcs-p6-b200"),
    )


def run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command.permissions)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_the_policy_of_an_environment() -> None:
    done = run("pcs-p6-b200", "act", "--policy")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["Statement"] == environment_policy(
        resolve(environment({}, base="pcs-p6-b200")), {"act": ACTIONS["act"]}
    )
    document = json.loads(run("dev", "--json").stdout)
    assert document["environment"] == "dev"
    assert list(document["groups"]) == ["read", "act", "deploy", "mirror", "people"]
    assert any("--deployed" in note for note in document["notes"])
    assert "rights on dev" in run("dev", "people").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such"], "there is no group and no environment `no-such`"),
        (["dev", "prod"], "no group and no environment `prod`"),
        (["people"], "people is for one environment"),
        (["--deployed"], "--deployed is for one environment"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: list[str], why: str) -> None:
    done = run(*words)

    assert done.exit_code == 2
    assert why in " ".join(done.output.split())


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5c0g1n3Zr8yq4o4l7bY9d3b1o8yQm2c2wV0y5o6b7k"
PEOPLE = {
    "alice": {"uid": 2001, "principals": ["arn:aws:iam::111122223333:role/alice"]},
    "al": {"uid": 2002, "principals": ["arn:aws:iam::111122223333:role/al-*"]},
}
SLURM = [name for name in ENVIRONMENTS if resolve(environment({}, base=name)).traits.slurm]


def of_user(name: str, user: str, *, ssh: bool = False) -> list[dict[str, Any]]:
    cluster = resolve(environment({"account": "111122223333", "users": PEOPLE}, base=name))
    return environment_policy(cluster, {"people": []}, user=user, ssh=ssh)


@pytest.mark.parametrize("name", SLURM)
def test_a_user_gets_a_session_as_that_user_only(name: str) -> None:
    made = of_user(name, "al")
    documents = [arn for one in made for arn in one["Resource"] if ":document/" in arn]
    assert [arn.rpartition("/")[2] for arn in documents] == [f"{name}-cluster-as-al"]
    starts = [one for one in made if "ssm:StartSession" in one["Action"]]
    assert starts
    for start in starts:
        assert start["Condition"]["ArnLike"] == {"aws:PrincipalArn": ["arn:aws:iam::111122223333:role/al-*"]}
        assert start["Condition"]["StringEqualsIfExists"] == {"aws:PrincipalTag/SSMSessionRunAs": "al"}


@pytest.mark.parametrize("name", SLURM)
@pytest.mark.parametrize("user", ["al", ""])
def test_ssh_is_a_right_of_its_own(name: str, user: str) -> None:
    """It adds AWS's document for SSH and nothing else, for the same principals."""
    without, with_ssh = of_user(name, user), of_user(name, user, ssh=True)
    bare = [{key: value for key, value in one.items() if key != "Sid"} for one in without]
    (added,) = [one for one in with_ssh if {k: v for k, v in one.items() if k != "Sid"} not in bare]
    assert len(with_ssh) == len(without) + 1 and added["Action"] == ["ssm:StartSession"]
    region = resolve(environment({}, base=name)).region
    assert added["Resource"] == [f"arn:aws:ssm:{region}:*:document/AWS-StartSSHSession"]
    assert ("aws:PrincipalArn" in str(added)) == bool(user)


def test_people_without_an_account_start_no_document_of_a_user() -> None:
    cluster = resolve(environment({"account": "111122223333", "users": PEOPLE}, base="prod"))
    text = json.dumps(environment_policy(cluster, {"people": []}))
    assert "-as-" not in text
    acting = json.dumps(environment_policy(cluster, {"act": ACTIONS["act"]}))
    assert "document/prod-cluster-as-*" in acting
    assert "prod-buckets-*/prod/state/*" in acting and '"kms:ViaService": "s3.*"' in acting


def test_the_policy_of_a_user_is_printed_for_those_who_can_have_one(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        command,
        "load_environment",
        lambda path: environment(
            {"users": PEOPLE | {"bob": {"uid": 2003}, "eve": {"uid": 2004, "keys": [KEY]}}}
            if str(path) == "prod"
            else {},
            base=str(path),
        ),
    )
    app = typer.Typer()
    app.command()(command.permissions)
    printed = CliRunner().invoke(app, ["prod", "people", "--user", "alice", "--policy"])
    assert "document/prod-cluster-as-alice" in printed.stdout and "Session*" not in printed.stdout
    assert "AWS-StartSSHSession" not in printed.stdout
    ssh = CliRunner().invoke(app, ["prod", "people", "--ssh", "--policy"])
    assert ":*:document/AWS-StartSSHSession" in ssh.stdout, ssh.output
    for words, why in (
        (["prod", "people", "--user", "carol"], "there is no user `carol`"),
        (["prod", "people", "--user", "bob"], "has no principals"),
        (["prod", "--user", "alice"], "--user is for"),
        (["people", "--user", "alice"], "name it first"),
        (["prod", "act", "--ssh"], "--ssh is for `permissions ENVIRONMENT people`"),
        (["prod", "people", "--user", "alice", "--ssh"], "`alice` has no keys to log in with"),
        (["eks-p5en", "people", "--ssh"], "no accounts on nodes of Kubernetes"),
    ):
        refused = CliRunner().invoke(app, words)
        assert refused.exit_code == 2 and why in refused.output, refused.output


@pytest.mark.parametrize("role", [None, "arn:aws:iam::222233334444:role/reader"])
def test_metrics_are_asked_of_one_workspace_and_as_one_role_only(role: str | None) -> None:
    arn = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
    workspace = {"arn": arn, **({"role_arn": role} if role else {})}
    given = reads({"observability": {"kind": "prometheus", "workspace": workspace}})
    assert given["aps:QueryMetrics"] == [arn]
    assert given.get("sts:AssumeRole") == ([role] if role else None)


def test_without_metrics_nobody_may_ask_for_them() -> None:
    assert not {"aps:QueryMetrics", "sts:AssumeRole"} & reads({}).keys()
    for name, policy in DOCUMENT["policies"].items():
        actions = {action for one in policy["Statement"] for action in one["Action"]}
        assert "sts:AssumeRole" not in actions, f"{name}: on every role"


def reads(changes: dict[str, Any]) -> dict[str, list[str]]:
    """Resources by action of the group `read`."""
    cluster = resolve(environment({"account": "111122223333", **changes}, base="dev"))
    policy = environment_policy(cluster, {"read": ACTIONS["read"]}, None)
    return {action: one["Resource"] for one in policy for action in one["Action"]}

"""Preflight as a whole: quotas, the account, faults of AWS, the command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
import typer
from botocore.exceptions import ClientError
from hyperpod_service import refusal
from preflight_account import NOW, OWNER, World, furnish, shipped
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account import preflight as package
from ultracluster.account.preflight import Question, Report, Row, preflight
from ultracluster.account.preflight.account import BOOTSTRAP
from ultracluster.account.preflight.rows import unreadable
from ultracluster.cli import preflight as command
from ultracluster.config.capacity import Spot
from ultracluster.config.governance import CDK_QUALIFIER, Governance
from ultracluster.model import resolve
from ultracluster.project.cdk_command import pinned_cdk

SHORT = "ml.g6e.12xlarge for cluster usage"
GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(autouse=True)
def in_turn(aws_account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "WORKERS", 1)  # the answers of tests are not made for several threads


@pytest.fixture
def world() -> World:
    made = World(shipped("dev", account=OWNER))
    furnish(made)
    return made


def ask(world: World) -> Report:
    return preflight(world.account, resolve(world.environment), now=lambda: NOW)


def rows(report: Report) -> dict[str, Row]:
    found = {row.what: row for row in report.rows}
    assert len(found) == len(report.rows), "two rows say the same thing"
    return found


def test_a_ready_account_is_green(world: World) -> None:
    report = ask(world)
    assert report.level == "green", [row for row in report.rows if row.level != "green"]
    assert {"account", "quotas", "zone", "roles", "permissions"} <= set(report.sections)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_shipped_environment_can_be_asked_about(name: str) -> None:
    made = World(shipped(name))
    furnish(made)
    found = rows(ask(made))
    services = {need.quota.service for need in package.quotas.needs(resolve(made.environment))}
    assert services == {
        what.partition(":")[0] for what in found if ": " in what and what.split(":")[0] in services
    }


DENIED = ("AccessDeniedException", "access denied: {operation} is not allowed")


@pytest.mark.parametrize(
    ("service", "operation", "code", "says"),
    [
        ("service-quotas", "ListServiceQuotas", *DENIED),
        ("ec2", "DescribeAddresses", "UnauthorizedOperation", DENIED[1]),
        ("ec2", "DescribeNetworkInterfaces", *DENIED),
        ("ec2", "DescribeAvailabilityZones", *DENIED),
        ("ec2", "DescribeInstanceTypeOfferings", *DENIED),
        ("fsx", "DescribeFileSystems", *DENIED),
        ("sagemaker", "ListClusters", *DENIED),
        ("iam", "GetRole", "AccessDenied", DENIED[1]),
        ("iam", "SimulatePrincipalPolicy", *DENIED),
        ("ssm", "GetParameter", *DENIED),
        ("sagemaker", "ListClusters", "ThrottlingException", "{operation} is being throttled"),
        ("ec2", "DescribeVpcs", "ExpiredTokenException", "the credentials have expired"),
        ("service-quotas", "ListServiceQuotas", "InternalError", "{operation} failed: InternalError"),
    ],
)
def test_a_call_that_fails_costs_its_own_rows_only(
    world: World, service: str, operation: str, code: str, says: str
) -> None:
    before = rows(ask(world))
    world.refuse(service, operation, code)
    after = rows(ask(world))
    says = says.format(operation=operation)
    hit = {what for what, row in after.items() if says in row.found}
    assert hit and all(after[what].level in ("unknown", "yellow") for what in hit)
    untouched = {what for what in before if after.get(what) == before[what]}
    lost = set(before) - untouched
    assert len(untouched) >= len(before) // 3 and len(lost) <= 17
    assert any(row.level == "green" for row in after.values())


@pytest.mark.parametrize("empty", [lambda: [{}["Vpc"]], lambda: [[][0]]])
def test_an_answer_that_lacks_a_member_costs_its_own_row_only(empty: Callable[[], list[Row]]) -> None:
    (row,) = Question("network", "the VPC", empty).answer()

    assert (row.level, row.unread) == ("unknown", True) and "lacks" in row.found


@pytest.mark.parametrize(
    ("status", "level", "says"),
    [
        ("InService", "green", "is there already"),
        ("Updating", "yellow", "is Updating"),
        ("Failed", "red", "is Failed"),
        ("Brooding", "unknown", "unknown to this release"),
    ],
)
def test_the_state_of_a_cluster_that_exists(world: World, status: str, level: str, says: str) -> None:
    world.clusters = {"another": {}, "dev": {"ClusterStatus": status, "InstanceGroups": []}}
    row = rows(ask(world))["SageMaker HyperPod in the Region"]
    assert row.level == level and says in row.found


@pytest.mark.parametrize(
    ("version", "level"),
    [(None, "red"), ("5", "red"), ("6", "green"), ("30", "green"), ("new", "unknown")],
)
def test_the_bootstrap_is_new_enough(world: World, version: str | None, level: str) -> None:
    ssm = boto3.client("ssm", "us-west-2")
    ssm.delete_parameter(Name="/cdk-bootstrap/hnb659fds/version")
    if version:
        ssm.put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value=version, Type="String")
    row = rows(ask(world))["CDK bootstrap"]
    assert row.level == level
    assert (row.do == "") == (level == "green")


def test_a_bootstrap_of_ones_own_is_asked_for_by_its_qualifier(world: World) -> None:
    world = World(shipped("dev", account=OWNER, governance=Governance(bootstrap_qualifier="train")))
    row = rows(ask(world))["CDK bootstrap"]
    assert row.level == "red" and "under the qualifier train" in row.found
    # `npx cdk` is another package where no node_modules lie
    options = "--qualifier train --toolkit-stack-name CDKToolkit-train"
    assert row.do.startswith(f"npx aws-cdk@{pinned_cdk()} bootstrap {options} aws://")

    boto3.client("ssm", "us-west-2").put_parameter(
        Name="/cdk-bootstrap/train/version", Value="30", Type="String"
    )
    assert rows(ask(world))["CDK bootstrap"].level == "green"


def test_the_bootstrap_version_is_what_the_cdk_asks_for(tmp_path: Path) -> None:
    import aws_cdk as cdk

    app = cdk.App(outdir=str(tmp_path))
    cdk.CfnOutput(cdk.Stack(app, "empty"), "Output", value="value")
    app.synth()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    stack = manifest["artifacts"]["empty"]["properties"]
    assert stack["requiresBootstrapStackVersion"] == BOOTSTRAP
    parameter = package._account.PARAMETER.format(qualifier=CDK_QUALIFIER)
    assert stack["bootstrapStackVersionSsmParameter"] == parameter


def test_an_unused_service_has_no_role_yet(world: World) -> None:
    boto3.client("iam").delete_role(RoleName="AWSServiceRoleForAmazonFSx")
    row = rows(ask(world))["AWSServiceRoleForAmazonFSx"]
    assert row.level == "yellow" and "fsx.amazonaws.com" in row.do


def test_answers_keep_the_order_of_questions_and_progress_grows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(number: int) -> Callable[[], list[Row]]:
        def answer() -> list[Row]:
            time.sleep(0.05 - number * 0.01)
            if number == 2:
                raise refusal("AccessDenied", "", "Third")
            return [Row(str(number), "green", "")]

        return answer

    family = ModuleType("family")
    family.questions = lambda situation: [Question("zone", str(n), slow(n)) for n in range(5)]  # type: ignore[attr-defined]
    monkeypatch.setattr(package, "_FAMILIES", (family,))
    monkeypatch.setattr(package, "WORKERS", 8)
    seen: list[tuple[int, int]] = []
    report = preflight(
        world.account, resolve(world.environment), progress=lambda done, of: seen.append((done, of))
    )
    assert [row.what for row in report.rows] == ["0", "1", "2", "3", "4"]
    assert seen == [(number, 5) for number in range(6)]


def run(monkeypatch: pytest.MonkeyPatch, world: World | None, *arguments: str) -> Any:
    if world:
        monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: world.account)
        defaults: dict[str, Any] = {**(package.preflight.__kwdefaults__ or {}), "now": lambda: NOW}
        monkeypatch.setattr(package.preflight, "__kwdefaults__", defaults)
        monkeypatch.setattr(command, "now", lambda: NOW)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command.preflight)
    return CliRunner().invoke(app, [*arguments, "--no-sources"])  # which answer over the network


DEV = str(ROOT / "environments" / "dev.yaml")
PROD = str(ROOT / "environments" / "prod.yaml")


def broken(world: World) -> None:
    """Something of each level, for the golden files."""
    world.quotas[SHORT]["Value"] = 1
    del world.quotas["sagemaker: ml.m5.xlarge for cluster usage".partition(": ")[2]]
    world.refuse(
        "fsx",
        "DescribeFileSystems",
        "AccessDeniedException",
        "User: operator is not authorized to perform: fsx:DescribeFileSystems",
    )


@pytest.mark.parametrize(
    ("option", "file"),
    [("", "preflight.txt"), ("--markdown", "preflight.md"), ("--json", "preflight.json")],
)
def test_output_is_as_reviewed(monkeypatch: pytest.MonkeyPatch, world: World, option: str, file: str) -> None:
    broken(world)
    ended = run(monkeypatch, world, DEV, *([option] if option else []))
    assert ended.exit_code == 1 and "Traceback" not in ended.output
    assert ended.stdout == (GOLDEN / file).read_text()


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    assert run(monkeypatch, world, DEV).exit_code == 0
    both = run(monkeypatch, world, DEV, "--json", "--markdown")
    assert both.exit_code == 2
    assert run(monkeypatch, world, "no-such-environment").exit_code == 2
    wrong = run(monkeypatch, world, PROD)
    assert wrong.exit_code == 2 and "Traceback" not in wrong.output


def test_an_account_that_answers_nothing_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    denied: Any = {"Error": {"Code": "AccessDeniedException", "Message": "User: operator is not authorized"}}

    def refuse(self: Question) -> list[Row]:
        return [unreadable(self.what, ClientError(denied, "Any"))]

    monkeypatch.setattr(Question, "answer", refuse)
    ended = run(monkeypatch, world, DEV)
    assert ended.exit_code == 3
    assert ended.stdout.rstrip().endswith("unknown: most checks could not be made, so nothing is proven")


def test_strict_is_not_green_while_one_question_could_not_be_asked(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    assert run(monkeypatch, world, DEV, "--strict").exit_code == 0

    world.refuse("fsx", "DescribeFileSystems", "ThrottlingException")
    world.refuse("iam", "GetRole", "AccessDenied")
    lenient = json.loads(run(monkeypatch, world, DEV, "--json").stdout)
    ended = run(monkeypatch, world, DEV, "--strict")
    document = json.loads(run(monkeypatch, world, DEV, "--strict", "--json").stdout)

    assert (lenient["strict"], lenient["exit_code"]) == (False, 0)
    assert lenient["not_asked"]
    assert ended.exit_code == document["exit_code"] == 3
    assert document["not_asked"] == lenient["not_asked"]
    assert f"--strict: not asked: {'; '.join(document['not_asked'])}" in ended.stderr
    assert "Traceback" not in ended.output


def test_strict_does_not_hide_what_is_red(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    broken(world)
    world.refuse("iam", "GetRole", "AccessDenied")

    assert run(monkeypatch, world, DEV, "--strict").exit_code == 1


@pytest.mark.parametrize("error", ["ExpiredToken", "InvalidClientTokenId"])
def test_unusable_credentials_end_at_once(monkeypatch: pytest.MonkeyPatch, world: World, error: str) -> None:
    world.account._identity = None
    world.refuse("sts", "GetCallerIdentity", error)
    ended = run(monkeypatch, world, DEV)
    assert ended.exit_code == 2 and "credentials" in ended.output and "Traceback" not in ended.output


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    ended = run(monkeypatch, None, DEV)
    assert ended.exit_code == 2 and "no AWS credentials" in ended.output


def test_quotas_are_requested_once(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    world.quotas[SHORT]["Value"] = 1
    refused = run(monkeypatch, world, DEV, "--request-quotas")
    assert refused.exit_code == 2 and "nothing changed" in refused.output
    assert f"would           {SHORT}: 1 -> 2" in refused.output
    assert not [name for name, _ in world.asked if name == "RequestServiceQuotaIncrease"]

    filed = run(monkeypatch, world, DEV, "--request-quotas", "--yes")
    assert filed.exit_code == 1 and f"filed           {SHORT}: 1 -> 2, PENDING" in filed.output
    asked = [asked for name, asked in world.asked if name == "RequestServiceQuotaIncrease"]
    assert asked == [
        {"ServiceCode": "sagemaker", "QuotaCode": world.quotas[SHORT]["QuotaCode"], "DesiredValue": 2}
    ]

    assert f"  Quotas: {SHORT} 1 -> 2." in filed.output and "\nlead time: AWS publishes none" in filed.output

    again = run(monkeypatch, world, DEV, "--request-quotas", "--yes", "--json")
    assert json.loads(again.stdout)["business_case"][1].startswith("  Environment dev in ")
    (request,) = json.loads(again.stdout)["requests"]
    assert request["state"] == "open" and request["status"] == "PENDING" and request["id"]
    assert len([name for name, _ in world.asked if name == "RequestServiceQuotaIncrease"]) == 1

    world.quotas[SHORT]["Value"] = 2
    assert "none needed" in run(monkeypatch, world, DEV, "--request-quotas").output


@pytest.mark.parametrize(
    ("status", "desired", "state", "asks"),
    [
        ("PENDING", 2, "open", False),
        ("CASE_OPENED", 2, "open", False),
        ("CASE_OPENED", 1.5, "open", False),
        ("PONDERING", 2, "open", False),
        ("APPROVED", 2, "approved", False),
        ("APPROVED", 1, "filed", True),
        ("DENIED", 2, "filed", True),
        ("NOT_APPROVED", 2, "filed", True),
        ("CASE_CLOSED", 2, "filed", True),
    ],
)
def test_an_earlier_request_is_tracked(
    monkeypatch: pytest.MonkeyPatch, world: World, status: str, desired: float, state: str, asks: bool
) -> None:
    world.quotas[SHORT]["Value"] = 1
    code = world.quotas[SHORT]["QuotaCode"]
    world.requests[code] = [{"Id": "r0", "Status": status, "DesiredValue": desired, "Created": NOW}]
    ended = run(monkeypatch, world, DEV, "--request-quotas", "--yes", "--json")
    (request,) = json.loads(ended.stdout)["requests"]
    assert request["state"] == state
    assert bool([name for name, _ in world.asked if name == "RequestServiceQuotaIncrease"]) == asks


def test_requests_that_cannot_be_made_cost_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    world.quotas[SHORT]["Value"] = 1
    world.quotas["VPCs per Region"] |= {"Value": 1, "Adjustable": False}
    world.quotas["EC2-VPC Elastic IPs"]["Value"] = 0
    world.refuse("service-quotas", "RequestServiceQuotaIncrease", "QuotaExceededException", "one at a time")
    ended = run(monkeypatch, world, DEV, "--request-quotas", "--yes", "--json")
    states = {request["quota"]: request["state"] for request in json.loads(ended.stdout)["requests"]}
    assert states == {
        SHORT: "failed", "VPCs per Region": "not adjustable", "EC2-VPC Elastic IPs": "failed",
    }  # fmt: skip
    assert ended.exit_code == 1
    del world.refused["service-quotas", "RequestServiceQuotaIncrease"]
    world.refuse("service-quotas", "ListRequestedServiceQuotaChangeHistoryByQuota", "AccessDeniedException")
    blind = run(monkeypatch, world, DEV, "--request-quotas", "--yes", "--json")
    assert {request["state"] for request in json.loads(blind.stdout)["requests"]} == {
        "failed",
        "not adjustable",
    }
    assert not [name for name, _ in world.asked if name == "RequestServiceQuotaIncrease"]


def test_spot_outside_hyperpod_wants_its_role() -> None:
    environment = shipped("parallelcluster-p5")
    groups = {
        name: group.model_copy(update={"capacity": Spot(kind="spot")}) if group.role == "compute" else group
        for name, group in environment.node_groups.items()
    }
    made = World(environment.model_copy(update={"node_groups": groups}))
    furnish(made)
    found = rows(ask(made))
    assert found["AWSServiceRoleForEC2Spot"].level == "green"
    assert "ec2: All P5 Spot Instance Requests" in found

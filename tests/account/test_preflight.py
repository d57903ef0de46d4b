"""Preflight as a whole: quotas, the account, faults of AWS, the command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
import typer
from botocore.exceptions import ClientError
from hyperpod_service import refusal
from moto import mock_aws
from preflight_account import NOW, OWNER, World, furnish
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account import preflight as package
from ultracluster.account.preflight import Question, Report, Row, preflight
from ultracluster.account.preflight.account import BOOTSTRAP
from ultracluster.account.preflight.permissions import deploy_actions, principal
from ultracluster.account.preflight.rows import unreadable
from ultracluster.cli import preflight as command
from ultracluster.config import Environment, load
from ultracluster.config.capacity import Spot
from ultracluster.config.governance import CDK_QUALIFIER, Governance
from ultracluster.model import resolve
from ultracluster.project.cdk_command import pinned_cdk

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(autouse=True)
def aws_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # a quarter of a second each time
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(package, "WORKERS", 1)  # the answers of tests are not made for several threads
    with mock_aws():
        yield


def shipped(name: str, **changes: Any) -> Environment:
    return load(ROOT / "environments" / f"{name}.yaml").environment.model_copy(update=changes)


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


USAGE = "sagemaker: ml.g6e.12xlarge for cluster usage"


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


@pytest.mark.parametrize(
    ("name", "value", "level", "says", "do"),
    [
        (USAGE.partition(": ")[2], 1, "red", "quota 1, in use 0, needed 2", "ask for 2"),
        (USAGE.partition(": ")[2], 2, "green", "quota 2, in use 0, needed 2", ""),
        (USAGE.partition(": ")[2], None, "unknown", "not listed in this Region; needed 2", "not zero"),
        ("EC2-VPC Elastic IPs", 0, "red", "quota 0, in use 0, needed 1 addresses", "ask for 1"),
        ("VPCs per Region", 1, "red", "quota 1, in use 1, needed 1 VPCs", "ask for 2"),
    ],
)
def test_quotas_are_held_against_need_and_use(
    world: World, name: str, value: float | None, level: str, says: str, do: str
) -> None:
    if value is None:
        del world.quotas[name]
    else:
        world.quotas[name]["Value"] = value
    row = next(row for what, row in rows(ask(world)).items() if what.endswith(name))
    assert row.level == level and says in row.found and do in row.do


def test_the_applied_value_comes_before_the_default_one(world: World) -> None:
    name = USAGE.partition(": ")[2]
    world.defaults[name] = {**world.quotas[name], "Value": 0}
    assert rows(ask(world))[USAGE].level == "green"
    del world.quotas[name]
    row = rows(ask(world))[USAGE]
    assert row.level == "red" and "quota 0 (default)" in row.found


def test_a_trusted_code_finds_a_quota_that_was_renamed_and_an_untrusted_one_does_not(world: World) -> None:
    world.quotas["EC2-VPC Elastic IPs"]["QuotaName"] = "Addresses"
    world.quotas[USAGE.partition(": ")[2]] |= {"QuotaName": "something else", "QuotaCode": "L-A15DF696"}
    found = rows(ask(world))
    assert found["ec2: Addresses"].level == "green"
    assert found[USAGE].level == "unknown"


def group(count: int, target: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.g6e.12xlarge",
        "CurrentCount": count,
        "TargetCount": count if target is None else target,
        **more,
    }


def test_other_clusters_count_and_the_environments_own_does_not(world: World) -> None:
    world.clusters = {
        "one": {"InstanceGroups": [group(1, target=3)]},
        "two": {"InstanceGroups": [group(2, CapacityRequirements={"Spot": {}})]},
        "dev": {"InstanceGroups": [group(2)]},
    }
    found = rows(ask(world))
    assert "in use 3, needed 2" in found[USAGE].found
    total = "sagemaker: Total number of instances allowed across SageMaker HyperPod clusters"
    assert "in use 5, needed 4" in found[total].found


def test_running_instances_count_by_family_and_purchase() -> None:
    environment = shipped("parallelcluster-p5")
    made = World(environment)
    ec2 = boto3.client("ec2", environment.region)
    image = ec2.register_image(Name="nodes", Architecture="x86_64")["ImageId"]
    ours = {"Key": "parallelcluster:cluster-name", "Value": environment.cluster_name}
    for kind, tag in (("p5.48xlarge", {}), ("p4d.24xlarge", {}), ("m5.xlarge", {}), ("p5.48xlarge", ours)):
        tags = [{"ResourceType": "instance", "Tags": [tag]}] if tag else []
        ec2.run_instances(ImageId=image, InstanceType=kind, MinCount=1, MaxCount=1, TagSpecifications=tags)
    row = rows(ask(made))["ec2: Running On-Demand P instances"]
    assert f"in use {192 + 96}, needed {8 * 192} vCPUs" in row.found


def test_a_use_that_only_cloudwatch_knows_is_read_there(world: World) -> None:
    metric = {
        "MetricNamespace": "AWS/Usage",
        "MetricName": "ResourceCount",
        "MetricDimensions": {"Service": "Elastic IP"},
        "MetricStatisticRecommendation": "Maximum",
    }
    from ultracluster.account.quotas.values import quota_states
    from ultracluster.catalog.quotas import quota
    from ultracluster.model.quota_needs import Need

    need = Need(quota=quota("groups-per-interface"), amount=1, why="a test")
    world.quotas[need.quota.name] = {
        "ServiceCode": "vpc", "QuotaCode": need.quota.code, "QuotaName": need.quota.name, "Value": 5,
        "UsageMetric": metric,
    }  # fmt: skip
    (state,) = quota_states(world.account, resolve(world.environment), [need])
    assert state.used is None and state.why_unknown
    boto3.client("cloudwatch", "us-west-2").put_metric_data(
        Namespace="AWS/Usage",
        MetricData=[
            {
                "MetricName": "ResourceCount",
                "Dimensions": [{"Name": "Service", "Value": "Elastic IP"}],
                "Value": 4,
                "Timestamp": datetime.now(UTC) - timedelta(minutes=5),
            }
        ],
    )
    (state,) = quota_states(world.account, resolve(world.environment), [need])
    assert state.used == 4 and not state.short


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


def test_missing_permissions_are_named(world: World) -> None:
    world.denied = {"sts:AssumeRole", "fsx:CreateFileSystem"}
    found = rows(ask(world))
    assert found["fsx:CreateFileSystem"].level == "red"
    assumed = [what for what in found if what.startswith("sts:AssumeRole cdk-hnb659fds-deploy-role")]
    assert assumed and found[assumed[0]].level == "red"
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
    wanted = {row["action"] for row in known if row["type"] in types}
    ours = {kind for kind in types if not kind.startswith("Custom::")}
    assert ours <= {row["type"] for row in known}
    assert wanted <= set(deploy_actions(resolve(shipped(name))))


def test_what_watches_is_made_with_actions_of_its_own() -> None:
    from templates import templates_alone
    from watching import watched

    known = json.loads((ROOT / "constructs/ultracluster/catalog/deploy_actions.json").read_text())["actions"]
    for name in ("dev", "pcs-p6-b200"):
        cluster = watched(name)
        made = templates_alone(cluster.environment)
        types = {one["Type"] for stack in made.values() for one in stack["Resources"].values()}
        assert {kind for kind in types if not kind.startswith("Custom::")} <= {row["type"] for row in known}
        asked = set(deploy_actions(cluster))
        assert {row["action"] for row in known if row["type"] in types} <= asked
        without = cluster.environment.model_copy(update={"observability": None})
        assert asked - set(deploy_actions(resolve(without))) >= {
            "events:PutRule",
            "cloudwatch:PutMetricAlarm",
        }


def test_only_awss_own_collector_asks_for_the_right_to_make_one() -> None:
    from kubernetes_support import environment

    for collector in ("agent", "managed"):
        wanted = {"observability": {"kind": "prometheus", "collector": collector}}
        asked = set(deploy_actions(resolve(environment(wanted))))
        assert ("aps:CreateScraper" in asked) is (collector == "managed")


def test_the_actions_are_operations() -> None:
    from botocore.session import Session

    known = json.loads((ROOT / "constructs/ultracluster/catalog/deploy_actions.json").read_text())["actions"]
    session = Session()
    renamed = {"lambda:InvokeFunction": "Invoke", "budgets:ModifyBudget": "CreateBudget"}
    permissions_alone = {"iam:PassRole", "pcs:AllowVendedLogDeliveryForResource"}
    for row in known:
        operations: Any
        service, _, operation = row["action"].partition(":")
        if row["action"] not in permissions_alone:
            operations = session.get_service_model({"aps": "amp"}.get(service, service)).operation_names
            assert renamed.get(row["action"], operation) in operations


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
    world.quotas[USAGE.partition(": ")[2]]["Value"] = 1
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


SHORT = USAGE.partition(": ")[2]


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
    states = {one["quota"]: one["state"] for one in json.loads(ended.stdout)["requests"]}
    assert states == {
        SHORT: "failed", "VPCs per Region": "not adjustable", "EC2-VPC Elastic IPs": "failed",
    }  # fmt: skip
    assert ended.exit_code == 1
    del world.refused["service-quotas", "RequestServiceQuotaIncrease"]
    world.refuse("service-quotas", "ListRequestedServiceQuotaChangeHistoryByQuota", "AccessDeniedException")
    blind = run(monkeypatch, world, DEV, "--request-quotas", "--yes", "--json")
    assert {one["state"] for one in json.loads(blind.stdout)["requests"]} == {"failed", "not adjustable"}
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

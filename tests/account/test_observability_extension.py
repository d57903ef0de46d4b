"""HyperPod's extension on Slurm: what is asked of AWS for what a file says, through a life of the extension.

Requests and answers are held against the SDK's own model of the API, by `hyperpod_service`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import keys
from botocore.exceptions import ParamValidationError
from hyperpod_service import ARN, HyperPod, account, answer, refusal

from ultracluster.account import observability_extension as extension
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.observability_extension import Found, Issue, Step, Wanted
from ultracluster.config import Environment, load
from ultracluster.config.observability import Extension, Observability

__all__ = ["keys"]

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"
EXTENSION = "arn:aws:sagemaker:us-west-2:111122223333:extension/sagemaker-observability/abcdefghijkl/0a1b2c3d"
ADVANCED = {"metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}}}
DEFAULTS = {"metricsProvider": {"nodeMetrics": {"level": "BASIC"}, "networkMetrics": {"level": "BASIC"}}}


def merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396, as its own pseudo code has it, over the defaults of the service."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            if name in DEFAULTS:
                result[name] = DEFAULTS[name]
        elif isinstance(value, dict):
            result[name] = merged(result.get(name) or {}, value)
        else:
            result[name] = value
    return result


class Service:
    """The extensions of one cluster: at most one, which becomes what it was asked for after two looks.

    Attributes:
        there: as DescribeClusterExtension tells it; None: there is none.
        then: status after the next looks.
        issues: what is wrong on nodes.
        asked: requests that change something.
    """

    def __init__(self, made: Account) -> None:
        self.there: dict[str, Any] | None = None
        self.then: list[str] = []
        self.issues: list[dict[str, Any]] = []
        self.active = 9
        self.refuse: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.asked: list[tuple[str, dict[str, Any]]] = []
        client = made.client("sagemaker")
        for operation, reply in (
            ("ListClusterExtensions", self.list),
            ("DescribeClusterExtension", self.describe),
            ("CreateClusterExtension", self.create),
            ("UpdateClusterExtension", self.update),
            ("DeleteClusterExtension", self.delete),
        ):
            answer(client, operation, reply)

    def have(self, status: str, version: str = "1.2.0", **configuration: Any) -> None:
        self.there = {
            "ClusterArn": ARN,
            "ExtensionArn": EXTENSION,
            "ExtensionName": "sagemaker-observability",
            "ExtensionVersion": version,
            "Status": status,
            "ConfigurationValues": json.dumps(merged(DEFAULTS, configuration)),
        }

    def list(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Another one first, on a page of its own."""
        other = {
            "ExtensionArn": EXTENSION.replace("sagemaker-observability", "sagemaker-other"),
            "ExtensionName": "sagemaker-other",
            "ExtensionVersion": "1.0.0",
            "Status": "Active",
        }
        if "NextToken" not in asked:
            return {"Extensions": [other], "NextToken": "more"}
        names = ("ExtensionArn", "ExtensionName", "ExtensionVersion", "Status")
        return {"Extensions": [{name: self.there[name] for name in names}] if self.there else []}

    def describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.there is None or asked["ExtensionArn"] != EXTENSION:
            raise refusal("ResourceNotFound", "no such extension")
        told = {
            "ExtensionDetails": dict(self.there),
            "NodeSummary": {"TotalCount": 9, "ActiveCount": self.active},
            "Health": {"Issues": self.issues},
        }
        if self.then:
            self.there["Status"] = self.then.pop(0)
            if self.there["Status"] == "gone":
                self.there = None
        return told

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("create", asked))
        if self.refuse:
            return self.refuse(asked)
        if self.there:
            raise refusal("ConflictException", "an extension of this name is there")
        self.have("Creating", asked.get("ExtensionVersion", "1.3.0"))
        assert self.there
        self.there["ConfigurationValues"] = json.dumps(
            merged(DEFAULTS, json.loads(asked.get("ConfigurationValues", "{}")))
        )
        return {"ExtensionArn": EXTENSION}

    def update(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("update", asked))
        assert self.there
        now = json.loads(self.there["ConfigurationValues"])
        self.there |= {
            "Status": "Updating",
            "ExtensionVersion": asked.get("ExtensionVersion", self.there["ExtensionVersion"]),
            "ConfigurationValues": json.dumps(
                merged(now, json.loads(asked.get("ConfigurationValues", "{}")))
            ),
        }
        return {"ExtensionArn": EXTENSION}

    def delete(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("delete", asked))
        assert self.there
        self.there["Status"] = "Deleting"
        return {"ExtensionArn": EXTENSION}


@pytest.fixture
def made() -> Account:
    return account()


@pytest.fixture
def service(made: Account) -> Service:
    HyperPod(made)
    return Service(made)


def environment(extension: Extension | None = None, kind: str = "hyperpod") -> Environment:
    dev = load(DEV).environment
    observability = Observability(kind=kind, extension=extension)  # type: ignore[arg-type]
    return dev.model_copy(update={"observability": observability})


def run(made: Account, service: Service, wanted: Environment, then: list[str]) -> tuple[Step, Found | None]:
    """One `apply`: what is there is compared, asked for and watched."""
    cluster, step = extension.examine(made, wanted)
    extension.carry_out(made, cluster.arn, step)
    service.then = then
    ticks = iter(range(0, 10_000, 15))
    return step, extension.follow(made, cluster.arn, sleep=lambda _: None, clock=lambda: float(next(ticks)))


def test_a_life_from_nothing_over_an_update_and_a_failure_to_nothing(made: Account, service: Service) -> None:
    plain = environment()
    step, found = run(made, service, plain, ["Creating", "Active"])
    assert step.action == "create"
    assert found and (found.status, found.version) == ("Active", "1.3.0")
    assert service.asked == [("create", {"ClusterArn": ARN, "ExtensionName": "sagemaker-observability"})]

    assert extension.examine(made, plain)[1].action == "none", "applied twice, nothing is asked twice"

    advanced = environment(Extension(configuration=ADVANCED))
    step, found = run(made, service, advanced, ["Updating", "Degraded"])
    assert (step.action, step.patch, step.version) == ("update", ADVANCED, None)
    assert "ExtensionVersion" not in service.asked[-1][1]
    assert found and found.status == "Degraded"

    service.active = 7
    service.issues = [{"Code": "AccessDenied", "Message": "aps:RemoteWrite", "NodeCount": 2}]
    step, found = run(made, service, advanced, ["Active"])
    assert step.action == "retry" and "7 of 9" in step.why
    assert step.issues == (Issue(code="AccessDenied", message="aps:RemoteWrite", nodes=2),)
    retried = service.asked[-1][1]
    assert "ConfigurationValues" not in retried and "ExtensionVersion" not in retried, "nothing changes"

    step, found = run(
        made, service, environment(Extension(version="1.4.0", configuration=ADVANCED)), ["Active"]
    )
    assert (step.action, step.version, step.patch) == ("update", "1.4.0", None)
    assert found and found.version == "1.4.0"

    step, found = run(made, service, environment(kind="prometheus"), ["Deleting", "gone"])
    assert step.action == "delete" and "twice" in step.why
    assert found is None
    assert extension.examine(made, environment(kind="prometheus"))[1].action == "none"


@pytest.mark.parametrize("status", ["Creating", "Updating", "Deleting"])
def test_while_it_is_busy_nothing_is_asked(made: Account, service: Service, status: str) -> None:
    service.have(status)
    step, _ = run(made, service, environment(Extension(configuration=ADVANCED)), ["Active"])
    assert step.action == "wait"
    assert not service.asked


@pytest.mark.parametrize(
    ("status", "action"),
    [("CreateFailed", "retry"), ("UpdateFailed", "retry"), ("Degraded", "retry"), ("DeleteFailed", "refuse")],
)
def test_what_has_failed_is_tried_again_where_aws_can(
    made: Account, service: Service, status: str, action: str
) -> None:
    service.have(status)
    assert extension.examine(made, environment())[1].action == action


def test_every_state_of_the_api_leads_somewhere(made: Account) -> None:
    shape = made.client("sagemaker").meta.service_model.shape_for("ExtensionStatus")
    for status in shape.enum:
        found = Found(arn=EXTENSION, version="1.0.0", status=status)
        assert extension.compare(Wanted(), found).action in ("none", "wait", "retry", "refuse")
        assert extension.compare(None, found).action in ("delete", "wait")
    codes = made.client("sagemaker").meta.service_model.shape_for("ExtensionHealthIssueCode").enum
    assert "AccessDenied" in codes


def test_a_version_only_goes_upwards(made: Account, service: Service) -> None:
    service.have("Active", "1.10.0")
    step = extension.examine(made, environment(Extension(version="1.9.9")))[1]
    assert step.action == "refuse" and "1.10.0" in step.why
    assert extension.examine(made, environment(Extension(version="1.10.0")))[1].action == "none"
    assert extension.examine(made, environment(Extension(version="1.11.0")))[1].version == "1.11.0"


def test_only_what_differs_is_sent_and_defaults_are_no_difference() -> None:
    there = {"a": {"b": 1, "c": {"d": "x"}}, "e": [1, 2], "f": True}
    assert extension.difference({}, there) == {}
    assert extension.difference({"a": {"b": 1}}, there) == {}
    assert extension.difference({"a": {"b": 2}}, there) == {"a": {"b": 2}}
    assert extension.difference({"a": {"c": {"d": "y"}}, "f": True}, there) == {"a": {"c": {"d": "y"}}}
    assert extension.difference({"e": [2]}, there) == {"e": [2]}, "a list is replaced as a whole"
    assert extension.difference({"a": "text"}, there) == {"a": "text"}
    assert extension.difference({"g": {"h": 1}}, there) == {"g": {"h": 1}}
    assert extension.difference({"f": None}, there) == {"f": None}, "null resets"
    assert merged(there, extension.difference({"a": {"b": 2}}, there)) == {
        **there,
        "a": {**there["a"], "b": 2},
    }


def test_a_configuration_that_cannot_be_read_is_sent_again(made: Account, service: Service) -> None:
    service.have("Active")
    assert service.there
    service.there["ConfigurationValues"] = "not json"
    assert extension.examine(made, environment(Extension(configuration=ADVANCED)))[1].patch == ADVANCED


def test_a_cluster_that_cannot_have_one_is_named(made: Account) -> None:
    cluster = HyperPod(made)
    Service(made)
    cluster.cluster["NodeProvisioningMode"] = ""
    del cluster.cluster["NodeProvisioningMode"]
    with pytest.raises(AccountError, match="continuous"):
        extension.examine(made, environment())
    assert extension.examine(made, environment(kind="prometheus"))[1].action == "none"


def test_a_cluster_that_is_being_made_is_waited_for(made: Account) -> None:
    cluster = HyperPod(made, ClusterStatus="Creating")
    Service(made)
    assert cluster
    with pytest.raises(AccountError, match="ultracluster wait dev"):
        extension.examine(made, environment())


def test_what_aws_refuses_is_one_line(made: Account, service: Service) -> None:
    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal("ValidationException", "unknown setting metricProvider")

    service.refuse = refuse
    step = extension.examine(made, environment(Extension(configuration={"metricProvider": {}})))[1]
    with pytest.raises(AccountError, match="unknown setting metricProvider"):
        extension.carry_out(made, ARN, step)
    assert service.there is None


@pytest.mark.parametrize(
    "step",
    [
        Step(action="create", why="", patch={"a": "x" * 10_240}),
        Step(action="update", why="", arn="no arn", patch=ADVANCED),
    ],
)
def test_the_sdk_itself_refuses_what_the_api_has_not(made: Account, service: Service, step: Step) -> None:
    """Lengths are the service's to judge; the SDK checks what is there, and of which type."""
    request = extension._request(ARN, step)
    model = made.client("sagemaker").meta.service_model.operation_model("CreateClusterExtension").input_shape
    assert set(request) <= set(model.members)
    with pytest.raises(ParamValidationError):
        made.client("sagemaker").create_cluster_extension(ClusterArn=ARN, Unknown=1)


def test_tags_go_with_what_is_made(made: Account, service: Service) -> None:
    cluster, step = extension.examine(made, environment())
    extension.carry_out(made, cluster.arn, step, tags={"ultracluster:environment": "dev"})
    assert service.asked[0][1]["Tags"] == [{"Key": "ultracluster:environment", "Value": "dev"}]


def test_looking_ends_in_time(made: Account, service: Service) -> None:
    service.have("Updating")
    seen: list[str] = []
    ticks = iter(range(0, 10_000, 600))
    found = extension.follow(
        made,
        ARN,
        timeout=1800,
        report=lambda one: seen.append(one.status),
        sleep=lambda _: None,
        clock=lambda: float(next(ticks)),
    )
    assert found and found.status == "Updating"
    assert 2 <= len(seen) <= 4

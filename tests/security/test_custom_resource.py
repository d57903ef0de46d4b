"""The function that switches deletion protection, with a service that is busy, slow or refuses."""

from __future__ import annotations

import io
import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from ultracluster.security.deletion_protection import ANSWER

with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(str(ANSWER.parent))
    import answer  # pyright: ignore[reportMissingImports]
    import switch  # pyright: ignore[reportMissingImports]

NAME = "prod"


class Clock:
    """Seconds that pass only when someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


class Eks:
    """A control plane: an update of others is in progress for a while, and ours takes a while."""

    def __init__(
        self, clock: Clock, *, busy_s: float = 0, takes_s: float = 0, ends: str = "Successful"
    ) -> None:
        self.clock, self.busy_s, self.takes_s, self.ends = clock, busy_s, takes_s, ends
        self.protected, self.gone, self.asked = False, False, 0
        self.started: float | None = None

    def describe_cluster(self, *, name: str) -> dict[str, Any]:
        if self.gone:
            raise error("ResourceNotFoundException", "no cluster")
        return {"cluster": {"name": name, "status": "ACTIVE", "deletionProtection": self.protected}}

    def update_cluster_config(self, *, name: str, deletionProtection: bool) -> dict[str, Any]:  # noqa: N803
        del name
        self.asked += 1
        if self.clock() < self.busy_s or self.started is not None:
            raise error("ResourceInUseException", "currently has update 0585fedb in progress")
        self.started, self.new = self.clock(), deletionProtection
        return {"update": self._update()}

    def describe_update(self, *, name: str, updateId: str) -> dict[str, Any]:  # noqa: N803
        assert (name, updateId) == (NAME, "u-1")
        return {"update": self._update()}

    def _update(self) -> dict[str, Any]:
        assert self.started is not None
        if self.clock() < self.started + self.takes_s:
            return {"id": "u-1", "status": "InProgress", "errors": []}
        if self.ends == "Successful":
            self.protected = self.new
        return {
            "id": "u-1",
            "status": self.ends,
            "errors": [] if self.ends == "Successful" else [{"errorCode": "Unknown", "errorMessage": "why"}],
        }


def error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "UpdateClusterConfig")


def switched(eks: Eks, *, protected: bool = True, end: float = 840) -> str:
    return switch.switch(eks, NAME, protected=protected, end=end, clock=eks.clock, sleep=eks.clock.sleep)


@pytest.mark.parametrize(("busy_s", "takes_s"), [(0, 0), (300, 0), (0, 300), (300, 300)])
def test_it_waits_for_updates_of_others_and_for_its_own(busy_s: float, takes_s: float) -> None:
    eks = Eks(Clock(), busy_s=busy_s, takes_s=takes_s)

    assert switched(eks) == "switched"

    assert eks.protected and busy_s + takes_s <= eks.clock() <= busy_s + takes_s + 2 * switch.PAUSE_S


@pytest.mark.parametrize(
    ("eks", "why"),
    [
        (Eks(Clock(), busy_s=10_000), "busy with another change of prod.*deploy again"),
        (Eks(Clock(), takes_s=10_000), "update u-1 of prod is still in progress; deploy again"),
        (Eks(Clock(), ends="Failed"), "update u-1 of prod is Failed: Unknown: why"),
        (Eks(Clock(), ends="Cancelled"), "update u-1 of prod is Cancelled"),
    ],
    ids=["always busy", "never ends", "failed", "cancelled"],
)
def test_it_gives_up_in_time_and_says_why(eks: Eks, why: str) -> None:
    with pytest.raises(switch.NotSwitchedError, match=why):
        switched(eks)

    assert not eks.protected and eks.clock() <= 840


def test_what_is_so_already_is_not_changed() -> None:
    eks = Eks(Clock())
    eks.protected = True

    assert switched(eks) == "it was so already" and eks.asked == 0
    eks.takes_s = 30
    assert switched(eks, protected=False) == "switched" and not eks.protected


def test_a_cluster_that_is_gone_needs_no_switch_off_and_refuses_a_switch_on() -> None:
    eks = Eks(Clock())
    eks.gone = True

    assert switched(eks, protected=False) == "the cluster is deleted"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        switched(eks)


def test_what_is_no_conflict_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    eks = Eks(Clock())

    def refused(**_: Any) -> Any:
        raise error("AccessDeniedException", "not authorized to perform: eks:UpdateClusterConfig")

    monkeypatch.setattr(eks, "update_cluster_config", refused)
    with pytest.raises(ClientError, match="not authorized"):
        switched(eks)
    assert eks.clock() == 0


EVENT = {
    "RequestType": "Create", "StackId": "stack", "RequestId": "request", "LogicalResourceId": "Cluster",
    "ResourceProperties": {"ClusterName": NAME},
    "ResponseURL": "https://cloudformation-custom-resource-response-uswest2.s3.us-west-2.amazonaws.com/x",
}  # fmt: skip


class Context:
    def get_remaining_time_in_millis(self) -> float:
        return 900_000


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    class Said(io.BytesIO):
        pass

    def urlopen(asked: Any, **_: Any) -> Any:
        found.append(json.loads(asked.data))
        return Said()

    monkeypatch.setattr(answer.urllib.request, "urlopen", urlopen)
    return found


@pytest.mark.parametrize(
    ("request_type", "protected"), [("Create", True), ("Update", True), ("Delete", False)]
)
def test_cloudformation_hears_of_it(
    request_type: str, protected: bool, answers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    eks = Eks(Clock())
    eks.protected = not protected
    monkeypatch.setattr(boto3, "client", lambda _: eks)

    switch.handler({**EVENT, "RequestType": request_type}, Context())

    (said,) = answers
    assert (said["Status"], said["PhysicalResourceId"]) == ("SUCCESS", "deletion-protection-prod")
    assert eks.protected is protected


def test_cloudformation_hears_why_it_failed(
    answers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    eks = Eks(Clock(), ends="Failed")
    monkeypatch.setattr(boto3, "client", lambda _: eks)

    switch.handler({**EVENT, "PhysicalResourceId": "it"}, Context())

    (said,) = answers
    assert (said["Status"], said["PhysicalResourceId"]) == ("FAILED", "it") and "Unknown: why" in said[
        "Reason"
    ]


def test_the_answer_goes_to_s3_only(answers: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="not S3's"):
        answer.answer({**EVENT, "ResponseURL": "https://evil.example/"}, "SUCCESS", "", physical_id="it")
    assert not answers

"""Settings in one form, and reports without a file."""

from __future__ import annotations

import pytest
from aws_cdk import Aws, Fn, Stack, Token
from constructs import Construct
from foreign import foreign_stack, refusal, warnings

from ultracluster.config.findings import Finding, Severity
from ultracluster.config.remedy import write
from ultracluster.config.storage import DataRepository, RdsMySql
from ultracluster.guard import already_judged, holds_token, report, report_findings, settings_of, unique_name
from ultracluster.guard.tokens import speaks_of_token


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()


@pytest.mark.parametrize(
    "value",
    [
        Aws.REGION,
        f"s3://{Aws.ACCOUNT_ID}/",
        Token.as_number({"Ref": "Size"}),
        Fn.split(",", Fn.import_value("subnets")),
        {"name": Fn.import_value("name")},
        [1, "a", Aws.REGION],
    ],
    # numbers of tokens differ between workers
    ids=["text", "in text", "number", "list", "in mapping", "in list"],
)
def test_a_token_is_seen_wherever_it_is(value: object) -> None:
    assert holds_token(value)


@pytest.mark.parametrize("value", ["${x}", 5, -1.0, -1e300, None, ["a"], {"a": 1}, "$" + "{AWS::Region}"])
def test_everything_else_is_none(value: object) -> None:
    assert not holds_token(value)


def test_a_number_that_is_not_known_yet_keeps_its_place() -> None:
    size = Token.as_number({"Ref": "Size"})

    made = settings_of(RdsMySql, None, {"kind": "rds-mysql", "storage_gib": size}, construct="It")

    assert made.storage_gib == size and made.multi_az is False


def test_several_settings_beside_a_config_are_all_named() -> None:
    with pytest.raises(ValueError, match="It: prefix, chunk_mib are given beside config="):
        settings_of(DataRepository, DataRepository(), {"prefix": "a/", "chunk_mib": 2}, construct="It")


def finding(severity: Severity, message: str) -> Finding:
    place = ("a", "b")
    return Finding(
        code="XYZ001", severity=severity, message=message, path=place, remedy=write(4).placed(place)
    )


def test_an_error_stops_the_synth_and_is_said_once(stack: Stack) -> None:
    report_findings(Construct(stack, "Part"), [finding("error", "no."), finding("error", "no.")])

    assert refusal(stack).count("[research/Part] XYZ001 a.b: no. Instead: b: 4") == 1


def test_a_warning_does_not(stack: Stack) -> None:
    report_findings(Construct(stack, "Part"), [finding("warning", "hm.")])

    (said,) = warnings(stack)
    assert said.startswith("XYZ001 a.b: hm. Instead: b: 4") and refusal(stack) == ""


def test_what_speaks_of_a_token_is_left_out(stack: Stack) -> None:
    number = Token.as_number({"Ref": "Size"})
    report_findings(stack, [finding("error", f"{Aws.REGION} is none."), finding("error", f"{number} GiB")])

    assert refusal(stack) == ""


def test_below_a_judged_scope_nothing_is_said(stack: Stack) -> None:
    already_judged(stack)
    part = Construct(stack, "Part")

    report(part, RdsMySql(kind="rds-mysql", instance_class="t2.nano"))
    report_findings(part, [finding("error", "no."), finding("warning", "hm.")])

    assert refusal(stack) == "" and warnings(stack) == []


def test_a_name_from_the_path_is_one_that_services_take(stack: Stack) -> None:
    name = unique_name(Construct(Construct(stack, "Team_A"), "Cluster"), max_length=30)

    assert name.replace("-", "").isalnum() and name == name.lower() and len(name) <= 30
    assert name != unique_name(Construct(stack, "Cluster"), max_length=30)


def test_a_number_that_is_a_token_is_seen_in_a_text_however_many_there_are() -> None:
    """The CDK counts them in the last digits."""
    number = max((Token.as_number({"Ref": "Size"}) for _ in range(3000)), key=abs)
    assert speaks_of_token(f"capacity_gib: {number} GiB") and not speaks_of_token("capacity_gib: -1.5e+289")

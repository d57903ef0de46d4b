"""Settings in one form, and reports without a file."""

from __future__ import annotations

import pytest
from aws_cdk import Aws, Fn, Stack, Token
from constructs import Construct
from foreign import foreign_stack, refusal, warnings

from ultracluster.config.findings import Finding
from ultracluster.config.remedy import write
from ultracluster.config.storage import DataRepository, RdsMySql
from ultracluster.guard import already_judged, holds_token, report, report_findings, settings_of, unique_name


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
)
def test_a_token_is_seen_wherever_it_is(value: object) -> None:
    assert holds_token(value)


@pytest.mark.parametrize("value", ["${x}", 5, -1.0, -1e300, None, ["a"], {"a": 1}, "$" + "{AWS::Region}"])
def test_everything_else_is_none(value: object) -> None:
    assert not holds_token(value)


def test_a_number_that_is_not_known_yet_keeps_its_place() -> None:
    size = Token.as_number({"Ref": "Size"})

    made = settings_of(
        RdsMySql, None, {"kind": "rds-mysql", "storage_gib": size}, construct="It", place=("storage",)
    )

    assert made.storage_gib == size and made.multi_az is False


def test_several_settings_beside_a_config_are_all_named() -> None:
    with pytest.raises(ValueError, match="It: prefix, chunk_mib are given beside config="):
        settings_of(DataRepository, DataRepository(), {"prefix": "a/", "chunk_mib": 2}, construct="It")


def finding(severity: str, message: str) -> Finding:
    return Finding(
        code="XYZ001", severity=severity, message=message, path=("a", "b"), remedy=write(4).placed(("a", "b"))
    )  # type: ignore[arg-type]


def test_errors_stop_the_synth_and_warnings_do_not(stack: Stack) -> None:
    part = Construct(stack, "Part")

    report_findings(part, [finding("error", "no."), finding("warning", "hm."), finding("error", "no.")])

    (said,) = warnings(stack)
    assert said.startswith("XYZ001 a.b: hm. Instead: 4")
    assert refusal(stack).count("[research/Part] XYZ001 a.b: no. Instead: 4") == 1


def test_what_speaks_of_a_token_is_left_out(stack: Stack) -> None:
    report_findings(
        stack, [finding("error", f"{Aws.REGION} is no Region."), finding("error", f"{Token.as_number(1)}")]
    )

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

"""The account behind every command, and its errors in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as known
from botocore.awsrequest import AWSResponse
from botocore.parsers import ResponseParserError
from botocore.stub import Stubber

from ultracluster.account.aws import (
    ATTEMPTS,
    AWS_ERRORS,
    Account,
    AccountError,
    check_account,
    code,
    explain,
    is_credentials,
    is_denied,
)
from ultracluster.config import Environment, load

ENVIRONMENTS = Path(__file__).parents[2] / "environments"
ARN = "arn:aws:sts::111122223333:assumed-role/operator/me"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own settings is seen."""
    for name in (
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")


def environment(**changes: Any) -> Environment:
    return load(ENVIRONMENTS / "dev.yaml").environment.model_copy(update=changes)


def refused(error_code: str, message: str = "", call: str = "ListClusterNodes") -> known.ClientError:
    return known.ClientError({"Error": {"Code": error_code, "Message": message}}, call)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (known.NoCredentialsError(), "no AWS credentials: run `aws configure` or `aws sso login`"),
        (known.PartialCredentialsError(provider="env", cred_var="x"), "no AWS credentials"),
        (known.UnauthorizedSSOTokenError(), "the SSO login has expired"),
        (known.SSOTokenLoadError(error_msg="x"), "the SSO login has expired"),
        (
            known.TokenRetrievalError(provider="sso", error_msg="Token has expired"),
            "the SSO login has expired",
        ),
        (known.ProfileNotFound(profile="prod"), "there is no such profile"),
        (known.NoRegionError(), "no AWS Region"),
        (known.EndpointConnectionError(endpoint_url="https://example"), "AWS cannot be reached"),
        (known.ConnectTimeoutError(endpoint_url="https://example"), "AWS did not answer in time"),
        (known.ReadTimeoutError(endpoint_url="https://example"), "AWS did not answer in time"),
        (known.ProxyConnectionError(proxy_url="https://example"), "no trusted connection"),
        (known.ConnectionClosedError(endpoint_url="https://example"), "the connection to AWS broke"),
        (known.ParamValidationError(report="Missing"), "the request is not one that AWS would take"),
        (known.UnknownServiceError(service_name="x", known_service_names="y"), "does not know this service"),
        (refused("ExpiredToken"), "the credentials have expired"),
        (refused("ExpiredTokenException"), "the credentials have expired"),
        (refused("RequestExpired"), "the credentials have expired"),
        (refused("UnrecognizedClientException"), "AWS does not know these credentials"),
        (refused("AuthFailure"), "AWS does not know these credentials"),
        (refused("ThrottlingException", "Rate exceeded"), f"throttled, even after {ATTEMPTS} attempts"),
        (refused("RequestLimitExceeded"), "ListClusterNodes is being throttled"),
        (refused("ValidationException", "bad name"), "AWS refused ListClusterNodes as not valid: bad name"),
        (refused("ConflictException", "Updating"), "something else is changing the same thing: Updating"),
        (refused("ResourceNotFound", "no cluster"), "ListClusterNodes found nothing: no cluster"),
        (refused("SomethingNew", "odd\nthing"), "ListClusterNodes failed: SomethingNew: odd thing"),
        (refused("502", "<html><h1>Bad Gateway</h1>"), "failed: 502: a page instead of a message"),
        (
            ResponseParserError("<!doctype html>\n<h1>Server Error</h1>"),
            "not AWS, or a broken AWS, answered",
        ),
        (RuntimeError("odd"), "odd"),
    ],
)
def test_every_error_is_one_plain_line(error: Exception, line: str) -> None:
    explanation = explain(error)
    assert isinstance(error, (RuntimeError, *AWS_ERRORS))
    assert line in explanation
    assert "\n" not in explanation and "Traceback" not in explanation


@pytest.mark.parametrize(
    ("message", "action"),
    [
        (
            f"User: {ARN} is not authorized to perform: sagemaker:ListClusterNodes on resource: arn:x",
            "sagemaker:ListClusterNodes",
        ),
        ("You are not authorized to perform this operation.", "ListClusterNodes"),
        ("", "ListClusterNodes"),
    ],
)
@pytest.mark.parametrize("error_code", ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"])
def test_a_missing_permission_is_named(error_code: str, message: str, action: str) -> None:
    error = refused(error_code, message)
    assert explain(error).startswith(f"access denied: {action} is not allowed")
    assert is_denied(error) and not is_credentials(error) and code(error) == error_code


def test_credentials_that_end_every_call_are_told_from_one_refused_call() -> None:
    assert is_credentials(refused("ExpiredToken")) and is_credentials(known.NoCredentialsError())
    assert not is_credentials(refused("AccessDenied")) and not is_credentials(refused("ThrottlingException"))


def test_the_region_is_taken_from_where_aws_tools_take_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AccountError, match="AWS_REGION"):
        Account()
    (tmp_path / "config").write_text("[profile lab]\nregion = eu-north-1\n")
    assert Account(profile="lab").region == "eu-north-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
    assert Account().region == "us-east-2"
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert Account().region == "us-west-2"
    assert Account("us-east-1").region == "us-east-1"


def test_no_profile_and_no_credentials_are_refused_in_words() -> None:
    with pytest.raises(AccountError, match="no such profile"):
        Account("us-east-1", "nobody")
    with pytest.raises(AccountError, match="no AWS credentials"):
        Account("us-east-1").identity()
    with pytest.raises(AccountError):
        Account("not a region").client("ec2")


def test_clients_are_made_once_and_retry(keys: None) -> None:
    account = Account("us-west-2")
    ec2 = account.client("ec2")
    assert account.client("ec2") is ec2
    assert account.client("ec2", "us-east-1") is not ec2
    assert ec2.meta.config.retries == {"mode": "adaptive", "total_max_attempts": ATTEMPTS}


def test_throttling_is_retried(keys: None) -> None:
    account = Account("us-west-2")
    sts = account.client("sts")
    answers = iter([503, 400, 200])
    bodies = {
        503: b"<ErrorResponse><Error><Code>ServiceUnavailable</Code></Error></ErrorResponse>",
        400: b"<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>",
        200: b"<GetCallerIdentityResponse><GetCallerIdentityResult><Account>111122223333</Account>"
        b"<Arn>" + ARN.encode() + b"</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>",
    }
    asked: list[int] = []

    def answer(request: Any, **_: Any) -> Any:
        status = next(answers)
        asked.append(status)

        class Raw:
            def stream(self, *_: Any, **__: Any) -> Any:
                yield bodies[status]

        return AWSResponse(request.url, status, {}, Raw())

    sts.meta.events.register("before-send.sts.GetCallerIdentity", answer)
    assert account.identity().account == "111122223333"
    assert asked == [503, 400, 200]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"account": "444455556666"}, r"belongs to account 444455556666.*111122223333.*--profile"),
        ({"region": "us-east-1"}, "is in us-east-1.*us-west-2"),
    ],
)
def test_the_wrong_account_and_region_are_refused(keys: None, changes: dict[str, str], why: str) -> None:
    account = Account("us-west-2")
    with Stubber(account.client("sts")) as sts:
        sts.add_response("get_caller_identity", {"Account": "111122223333", "Arn": ARN, "UserId": "x"})
        with pytest.raises(AccountError, match=why):
            check_account(account, environment(**changes))


@pytest.mark.parametrize("owner", [None, "111122223333"])
def test_the_right_account_is_asked_once(keys: None, owner: str | None) -> None:
    account = Account("us-west-2")
    with Stubber(account.client("sts")) as sts:
        sts.add_response("get_caller_identity", {"Account": "111122223333", "Arn": ARN, "UserId": "x"})
        assert check_account(account, environment(account=owner)).arn == ARN
        assert check_account(account, environment(account=owner)).account == "111122223333"
        sts.assert_no_pending_responses()


def test_an_expired_token_is_refused_in_words(keys: None) -> None:
    account = Account("us-west-2")
    with Stubber(account.client("sts")) as sts:
        sts.add_client_error("get_caller_identity", "ExpiredToken", "The security token has expired")
        with pytest.raises(AccountError, match="the credentials have expired"):
            check_account(account, environment())

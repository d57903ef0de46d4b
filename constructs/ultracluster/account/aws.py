"""The account that a command talks to: credentials, Region, retries, and errors in plain words.

Everything that asks AWS goes through one `Account`:

    account = Account(region=environment.region, profile=profile)
    check_account(account, environment)      # refuses the wrong account before anything is asked
    sagemaker = account.client("sagemaker")
    try:
        sagemaker.describe_cluster(ClusterName="train")
    except AWS_ERRORS as error:
        row(explain(error))                  # one line, no traceback
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar, cast

import boto3  # pyright: ignore[reportMissingTypeStubs]
from botocore import exceptions as known  # pyright: ignore[reportMissingTypeStubs]
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from botocore.parsers import ResponseParserError  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.account import patience, under_way
from ultracluster.config import Environment
from ultracluster.config.plain_text import visible

AWS_ERRORS: tuple[type[Exception], ...] = (known.BotoCoreError, known.ClientError, ResponseParserError)
"""What a boto3 call may raise; hand it to `explain`."""

ATTEMPTS = 8
"""Attempts of one request, the first one included; botocore waits longer after each, and in `adaptive`
mode slows down by itself while a service throttles (Boto3 guide, "Retries")."""


_Answer = TypeVar("_Answer")


class AccountError(Exception):
    """The account cannot be used; the message is one line that says why and what to do."""


@contextmanager
def plain_errors(about: str = "") -> Generator[None]:
    """Let what boto3 raises end as an `AccountError`, whose line begins with `about`."""
    try:
        yield
    except AWS_ERRORS as error:
        raise AccountError(about + explain(error)) from None


def existing(call: Callable[[], _Answer], *codes: str) -> _Answer | None:
    """Return the answer of a call, or None where AWS says that there is no such thing.

    Args:
        codes: error codes that say so. CloudFormation has none for a stack: its message is known here.
    """
    try:
        return call()
    except AWS_ERRORS as error:
        if code(error) in codes or (code(error) == "ValidationError" and "does not exist" in message(error)):
            return None
        raise


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose credentials these are."""

    account: str
    """AWS account, twelve digits."""
    arn: str
    """The user or assumed role."""


class Account:
    """One boto3 session, with clients that are made once and retry what is transient.

    Attributes:
        region: AWS Region of every client.
        profile: profile of the shared configuration; `AWS_PROFILE` or none by default.
    """

    def __init__(self, region: str | None = None, profile: str | None = None) -> None:
        """Open a session; nothing is asked yet.

        Args:
            region: by default `AWS_REGION`, `AWS_DEFAULT_REGION`, or that of the profile.

        Raises:
            AccountError: there is no such profile, or no Region is given anywhere.
        """
        with plain_errors():
            # the SDK itself knows only AWS_DEFAULT_REGION; the AWS CLI and Lambda set AWS_REGION
            self._session: Any = boto3.Session(
                profile_name=profile, region_name=region or os.environ.get("AWS_REGION")
            )
        if not self._session.region_name:
            raise AccountError(explain(known.NoRegionError()))
        under_way.watch(self._session.events)
        patience.watch(self._session.events)
        self.region = str(self._session.region_name)
        self.profile = str(self._session.profile_name)
        self._clients: dict[tuple[str, str], Any] = {}
        self._identity: Identity | None = None
        self._lock = Lock()  # a session may not make two clients at the same time

    def client(self, service: str, region: str | None = None, *, once: bool = False) -> Any:
        """The client of a service, the same one at each call; clients may be shared by threads.

        Args:
            region: another Region than the account's, for services that answer in one Region only.
            once: a request is sent a single time, also where no answer comes: for what must not happen twice.

        Raises:
            AccountError: the Region is no Region, or a setting of the SDK cannot be used.
        """
        where = region or self.region
        key = (f"{service}, once" if once else service, where)
        with self._lock:
            if key not in self._clients:
                config = _CONFIG.merge(_ONCE) if once else _CONFIG
                try:
                    client = self._session.client(service, region_name=where, config=config)
                except (*AWS_ERRORS, ValueError) as error:
                    raise AccountError(explain(error)) from None
                self._clients[key] = patience.guard(
                    client,
                    lambda: self._session.client(service, region_name=where, config=config.merge(_PATIENT)),
                )
            return self._clients[key]

    def credentials(self) -> Any:
        """Frozen credentials, to sign a request that no client makes (`access_key`, `secret_key`, `token`).

        Raises:
            AccountError: there are none.
        """
        with plain_errors():
            credentials = self._session.get_credentials()
            if credentials is None:
                raise known.NoCredentialsError
            return credentials.get_frozen_credentials()

    def identity(self) -> Identity:
        """Whose credentials these are (`sts:GetCallerIdentity`, which needs no permission); asked once.

        Raises:
            AccountError: there are no credentials, they have expired, or AWS cannot be reached.
        """
        if self._identity is None:
            sts = self.client("sts")
            with plain_errors():
                answer = sts.get_caller_identity()
            self._identity = Identity(str(answer["Account"]), str(answer["Arn"]))
        return self._identity


def alias(account: Account) -> str:
    """The account's alias; empty where it has none, or where it may not be asked for."""
    try:
        names: list[str] = account.client("iam").list_account_aliases()["AccountAliases"]
    except (*AWS_ERRORS, AccountError):
        return ""
    return names[0] if names else ""


_CONFIG: Any = Config(
    retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
    connect_timeout=5,
    read_timeout=patience.SILENCE,
    user_agent_extra="ultracluster",
)
_PATIENT: Any = Config(read_timeout=patience.LONG_SILENCE)
_ONCE: Any = Config(retries={"mode": "standard", "total_max_attempts": 1})


def check_account(account: Account, environment: Environment, *, elsewhere: bool = False) -> Identity:
    """Return whose credentials these are, if they are those of the environment.

    Args:
        elsewhere: another Region than the environment's is meant.

    Raises:
        AccountError: no usable credentials, or the file names another account or Region.
    """
    if environment.region != account.region and not elsewhere:
        raise AccountError(
            f"environment `{environment.name}` is in {environment.region}, the command was told to work in "
            f"{account.region}; leave the Region out or write {environment.region}"
        )
    identity = account.identity()
    if environment.account and environment.account != identity.account:
        raise AccountError(
            f"environment `{environment.name}` belongs to account {environment.account}, these credentials "
            f"({identity.arn}) to {identity.account}; choose a profile of {environment.account} with "
            "--profile or AWS_PROFILE"
        )
    return identity


def code(error: BaseException) -> str:
    """The error code of a refused request (`ThrottlingException`); empty for anything else."""
    return str(_detail(error).get("Code", ""))


def message(error: BaseException) -> str:
    """Return what AWS said, without the SDK's frame around it."""
    said = str(_detail(error).get("Message", "")) or str(error) or type(error).__name__
    return "a page instead of a message" if said.lstrip().startswith("<") else said  # a proxy's, mostly


def is_denied(error: BaseException) -> bool:
    """Return whether a permission is missing."""
    return code(error) in _DENIED


def is_throttled(error: BaseException) -> bool:
    """Return whether AWS took no further request for now."""
    return code(error) in _THROTTLED


def certainly_refused(error: BaseException) -> bool:
    """Return whether a request that was sent once changed nothing.

    It never left, or AWS answered with 4xx; a fault of AWS (5xx) or a lost answer leaves that open.
    """
    if isinstance(error, _NEVER_SENT):
        return True
    if not isinstance(error, known.ClientError):
        return False
    response: dict[str, Any] = cast("Any", error).response
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
    return 400 <= status < 500


_NEVER_SENT: tuple[type[Exception], ...] = (
    known.ConnectTimeoutError,
    known.EndpointConnectionError,
    known.NoCredentialsError,
    known.PartialCredentialsError,
    known.CredentialRetrievalError,
    known.ParamValidationError,
    known.ProxyConnectionError,
)


def is_credentials(error: BaseException) -> bool:
    """Return whether no further call can succeed with these credentials: absent, expired or wrong."""
    return code(error) in _EXPIRED | _INVALID or isinstance(error, _NO_LOGIN)


def explain(error: BaseException) -> str:
    """One plain line: what went wrong and, where it is known, what to do."""
    if isinstance(error, known.ClientError):
        return _refused(error)
    if isinstance(error, ResponseParserError):  # its text is the whole page
        return "something that is not AWS, or a broken AWS, answered: check proxies and endpoints"
    for kind, line in _LINES:
        if isinstance(error, kind):
            return f"{line} ({_one_line(str(error))})" if str(error) else line
    return _one_line(str(error)) or type(error).__name__


_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_INVALID = {
    "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "AuthFailure",
    "InvalidAccessKeyId", "IncompleteSignature", "MissingAuthenticationToken",
}  # fmt: skip
_DENIED = {
    "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "UnauthorizedException",
    "AuthorizationError", "NotAuthorized", "Client.UnauthorizedOperation", "403",
}  # fmt: skip
_THROTTLED = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
    "RequestThrottledException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown",
    "PriorRequestNotComplete", "EC2ThrottledException", "BandwidthLimitExceeded",
    "ProvisionedThroughputExceededException",
}  # fmt: skip
_NOT_VALID = {"ValidationException", "ValidationError", "InvalidParameterValue", "InvalidParameterException"}
_CONFLICT = {"ConflictException", "ResourceInUseException", "ResourceInUse", "OperationNotPermittedException"}
_MISSING = {"ResourceNotFound", "ResourceNotFoundException", "NoSuchEntity", "NotFoundException"}

_NO_LOGIN: tuple[type[Exception], ...] = (
    known.NoCredentialsError,
    known.PartialCredentialsError,
    known.CredentialRetrievalError,
    known.SSOError,
    known.TokenRetrievalError,
    known.RefreshWithMFAUnsupportedError,
)
_RENEW = "run `aws sso login`, or get new credentials, and try again"
_LINES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (
        (known.NoCredentialsError, known.PartialCredentialsError),
        "no AWS credentials: run `aws configure` or `aws sso login`, or set AWS_PROFILE",
    ),
    ((known.SSOError, known.TokenRetrievalError), f"the SSO login has expired or cannot be read: {_RENEW}"),
    (known.CredentialRetrievalError, "the profile's credentials cannot be read"),
    (known.ProfileNotFound, "there is no such profile; `aws configure list-profiles` lists them"),
    (known.NoRegionError, "no AWS Region: set AWS_REGION, or a Region in the profile"),
    (known.InvalidRegionError, "that is no AWS Region"),
    (known.EndpointConnectionError, "AWS cannot be reached: check the Region, the proxy and the network"),
    ((known.ConnectTimeoutError, known.ReadTimeoutError), "AWS did not answer in time; try again"),
    (
        (known.SSLError, known.ProxyConnectionError),
        "no trusted connection to AWS: check proxy and certificates",
    ),
    (known.HTTPClientError, "the connection to AWS broke; try again"),
    (known.ParamValidationError, "the request is not one that AWS would take"),
    (
        (known.UnknownServiceError, known.DataNotFoundError),
        "the installed boto3 does not know this service; update it",
    ),
)  # fmt: skip


def _refused(error: Any) -> str:
    what, said, call = code(error), _one_line(message(error)), str(error.operation_name)
    if what in _EXPIRED:
        return f"the credentials have expired: {_RENEW}"
    if what in _INVALID:
        return f"AWS does not know these credentials ({what}): check the profile, or {_RENEW}"
    if what in _DENIED:
        named = re.search(r"not authorized to perform:? ([a-z0-9-]+:[A-Za-z*]+)", said)
        return f"access denied: {named[1] if named else call} is not allowed" + (
            f" ({said})" if said and said != "Access Denied" else ""
        )
    if what in _THROTTLED:
        return f"{call} is being throttled, even after {ATTEMPTS} attempts; try again in a few minutes"
    if what in _NOT_VALID:
        return f"AWS refused {call} as not valid: {said}"
    if what in _CONFLICT:
        return f"{call} cannot run now, something else is changing the same thing: {said}"
    if what in _MISSING:
        return f"{call} found nothing: {said}"
    return f"{call} failed: {what}: {said}" if what else f"{call} failed: {said}"


def _detail(error: BaseException) -> dict[str, Any]:
    response: dict[str, Any] = getattr(error, "response", None) or {}
    return response.get("Error") or {}


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))

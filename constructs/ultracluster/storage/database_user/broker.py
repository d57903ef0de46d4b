"""Hands the function in the VPC what it needs to make slurmdbd's user: the half outside of the VPC.

The database's subnets need no way out, to Secrets Manager or elsewhere: this function reads the two secrets
and RDS's certificates, and sends them in the payload of one synchronous call, which Lambda encrypts on its
way and does not keep. CloudFormation calls it when the database is made or changed, a person after a
password was changed. Nothing that a caller sends decides where passwords go: the master's secret does.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Mapping
from typing import Any, cast

import boto3  # pyright: ignore[reportMissingTypeStubs]
from answer import answer  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]

ATTEMPTS, PAUSE_S = 4, 3
LONGEST_BUNDLE = 2**20
"""Bytes; a Region's is some 5 KiB, all Regions' some 170."""


class RefusedError(Exception):
    """The user could not be made; the message says why and holds no secret."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, str]:
    """Make or change the user, and tell CloudFormation if it asked. Nothing is dropped on deletion.

    Raises:
        RefusedError: it did not work, and a person asked.
    """
    del context
    try:
        outcome = {} if event.get("RequestType") == "Delete" else _make()
    except Exception as error:
        if "ResponseURL" not in event:
            raise
        # whatever went wrong, CloudFormation hears of it; messages of others could hold what they were sent
        why = str(error) if isinstance(error, RefusedError) else f"{type(error).__name__} in {__name__}"
        print(f"failed: {why}")  # noqa: T201 (the function's log)
        _respond(event, "FAILED", why)
        return {}
    print(f"done: {outcome}")  # noqa: T201
    if "ResponseURL" in event:
        _respond(event, "SUCCESS", "")
    return outcome


def _make() -> dict[str, str]:
    told = os.environ
    master = _secret(told["MASTER_SECRET"], "host", "port")
    request = {
        "host": master.pop("host"),
        "port": int(master.pop("port")),
        "schema": told["SCHEMA"],
        "require_tls": told["REQUIRE_TLS"] == "yes",
        "authorities": _authorities(told["AWS_REGION"]),
        "master": master,
        "user": _secret(told["USER_SECRET"]),
    }
    # longer than the other function may take; a second call beside the first would only be in its way
    patient: Any = Config(read_timeout=int(told["WAIT_S"]) + 20, retries={"total_max_attempts": 1})
    answer = _client("lambda", config=patient).invoke(
        FunctionName=told["WRITER"], Payload=json.dumps(request).encode()
    )
    outcome = cast("dict[str, str]", json.loads(answer["Payload"].read() or b"{}"))
    if "FunctionError" in answer:
        raise RefusedError(f"{outcome.get('errorMessage', 'no answer')} (see the log of {told['WRITER']})")
    return outcome


def _client(service: str, **settings: Any) -> Any:
    return cast("Any", boto3).client(service, **settings)


def _secret(arn: str, *further: str) -> dict[str, str]:
    """User and password of a secret, and further fields: RDS's say which database it is of.

    Raises:
        RefusedError: it cannot be read, or has another form.
    """
    try:
        text = _client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    except Exception as error:
        raise RefusedError(f"{arn} cannot be read: {type(error).__name__}") from None
    wanted = ("username", "password", *further)
    try:
        found = json.loads(text)
        return {name: str(found[name]) for name in wanted}
    except (ValueError, KeyError, TypeError):
        raise RefusedError(f"{arn} is not JSON with {', '.join(wanted)}") from None


def _bundles(region: str) -> tuple[str, ...]:
    """Where RDS has its certificates (RDS User Guide, "Using SSL/TLS to encrypt a connection to a DB instance
    or cluster"). China's is named by the guide for its Regions only; no source of ours has tried it."""
    host = "truststore.pki.rds.amazonaws.com"
    if region.startswith("us-gov-"):
        host = "truststore.pki.us-gov-west-1.rds.amazonaws.com"
    elif region.startswith("cn-"):
        host = "rds-truststore.s3.cn-north-1.amazonaws.com.cn"
    return tuple(f"https://{host}/{name}/{name}-bundle.pem" for name in (region, "global"))


def _authorities(region: str) -> str:
    """RDS's certificates, PEM; fetched over verified HTTPS, because they are renewed and no runtime has them.

    Raises:
        RefusedError: they cannot be had.
    """
    why = ""
    for attempt in range(ATTEMPTS):
        for url in _bundles(region):
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 (https, above)
                    text = answer.read(LONGEST_BUNDLE).decode("ascii")
            except (OSError, ValueError) as error:
                why = f"{url}: {error}"
                continue
            if "-----BEGIN CERTIFICATE-----" in text:
                return text
            why = f"{url} holds no certificate"
        time.sleep(PAUSE_S * (attempt + 1))
    raise RefusedError(f"RDS's certificates cannot be had: {why}")


def _respond(event: Mapping[str, Any], status: str, why: str) -> None:
    answer(event, status, why, physical_id=f"{os.environ['SCHEMA']}-user")

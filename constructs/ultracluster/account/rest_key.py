"""The key that signs tokens of Slurm's REST API, and where the API is: both are known to AWS PCS only."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

from ultracluster.account.aws import Account, AccountError, plain_errors
from ultracluster.model import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class RestKey:
    """What a token needs."""

    key: bytes = field(repr=False)
    """Whoever has it can be anybody in Slurm."""
    url: str
    """Of the API, as nodes and others in the VPC reach it."""


def rest_key(account: Account, cluster: Cluster) -> RestKey:
    """The key of a deployed cluster.

    Raises:
        AccountError: there is no REST API, or AWS does not let these credentials read the key.
    """
    name = cluster.cluster_name
    with plain_errors():
        found = account.client("pcs").get_cluster(clusterIdentifier=name)["cluster"]
        secret: dict[str, str] = found.get("slurmConfiguration", {}).get("jwtAuth", {}).get("jwtKey", {})
        if not secret:
            raise AccountError(f"{name} has no key for tokens: deploy it with `rest: true`")
        answer = account.client("secretsmanager").get_secret_value(
            SecretId=secret["secretArn"], VersionId=secret["secretVersion"]
        )
    try:
        key = base64.b64decode(answer["SecretString"], validate=True)
    except (KeyError, binascii.Error):
        raise AccountError(f"{secret['secretArn']} holds no key in base64") from None
    return RestKey(key=key, url=_url(found))


def _url(cluster: dict[str, Any]) -> str:
    """Empty where PCS names no such endpoint yet."""
    for endpoint in cluster.get("endpoints", []):
        if endpoint.get("type") == "SLURMRESTD":
            six = endpoint.get("ipv6Address")
            host = f"[{six}]" if six else endpoint["privateIpAddress"]
            return f"http://{host}:{endpoint['port']}"
    return ""

"""The Kubernetes API of an EKS cluster, asked with the AWS credentials of who runs the command.

No kubectl and no kubeconfig: which cluster is meant is never a question of somebody's current context.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain, plain_errors
from ultracluster.account.nodes.node import Node
from ultracluster.config.plain_text import one_line

TIMEOUT = 10.0
"""Seconds until an API that does not answer is taken for one that cannot be reached from here."""
EFA_DRIVER = "dra.net"
"""How the EFA DRA driver names itself in a ResourceSlice."""


class RefusedError(AccountError):
    """The API answered, and said no; nothing was changed.

    Attributes:
        status: of HTTP, as 409.
        reason: Kubernetes' own word, as `AlreadyExists`; empty where it gave none.
    """

    def __init__(self, text: str, status: int, reason: str) -> None:
        super().__init__(text)
        self.status, self.reason = status, reason


class NoAnswerError(AccountError):
    """The request was sent and no answer came: what it asks for may have been done, or not."""


class KubernetesApi:
    """A cluster's API; a new token is made for each request, as it lives for minutes only."""

    def __init__(self, account: Account, cluster: str) -> None:
        """Find the API.

        Raises:
            AccountError: there is no such cluster, or it cannot be read.
        """
        self._account, self.cluster = account, cluster
        eks = account.client("eks")
        with plain_errors():
            found: dict[str, Any] = eks.describe_cluster(name=cluster)["cluster"]
        self.endpoint = str(found.get("endpoint", ""))
        if not self.endpoint.startswith("https://"):
            raise AccountError(f"the EKS cluster {cluster} has no endpoint yet ({found.get('status', '')})")
        try:
            self.authority = str(found["certificateAuthority"]["data"])
            authority = base64.b64decode(self.authority).decode()
            self._trust = ssl.create_default_context(cadata=authority)
        except (KeyError, binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
            raise AccountError(f"the EKS cluster {cluster} has no usable certificate: {error}") from None

    def request(
        self,
        path: str,
        *,
        method: str = "GET",
        body: dict[str, Any] | None = None,
        content: str = "application/json",
    ) -> bytes:
        """Ask for a path.

        Args:
            content: what the body is; a patch has a type of its own.

        Raises:
            RefusedError: the API says no.
            NoAnswerError: it may have done what was asked, and did not say.
            AccountError: the API cannot be reached from here; nothing was asked.
        """
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {token(self._account, self.cluster)}"}
        if data is not None:
            headers["Content-Type"] = content
        call = urllib.request.Request(self.endpoint + path, data, headers, method=method)  # noqa: S310, https
        proxies = urllib.request.ProxyHandler()
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=self._trust))
        try:
            with opener.open(call, timeout=TIMEOUT) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise self._refused(error, method) from None
        except urllib.error.URLError as error:  # before the request was there as a whole
            raise AccountError(
                f"the Kubernetes API of {self.cluster} cannot be reached from here ({_words(error.reason)}); "
                "a private endpoint answers within its VPC only"
            ) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise NoAnswerError(
                f"the Kubernetes API of {self.cluster} was asked and did not answer ({_words(error)})"
            ) from None

    def get(self, path: str) -> dict[str, Any]:
        """Ask for an object."""
        try:
            found: Any = json.loads(self.request(path))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise AccountError(f"what answers for the Kubernetes API of {self.cluster} is something else")
        return found  # pyright: ignore[reportUnknownVariableType]

    def nodes(self) -> list[dict[str, Any]]:
        """Every node."""
        return self.items("/api/v1/nodes")

    def claimable_efa(self) -> dict[str, int]:
        """EFA interfaces that pods can claim, by the name of their node."""
        found: dict[str, int] = {}
        asked = f"fieldSelector={quote(f'spec.driver={EFA_DRIVER}')}"
        for item in self.items(f"/apis/resource.k8s.io/v1/resourceslices?{asked}"):
            spec: dict[str, Any] = item.get("spec", {})
            name = str(spec.get("nodeName", ""))
            found[name] = found.get(name, 0) + len(spec.get("devices", []))
        return found

    def items(self, path: str) -> list[dict[str, Any]]:
        """Every object of a list, page by page; `path` may have a query."""
        items: list[dict[str, Any]] = []
        more = ""
        first = "&" if "?" in path else "?"
        while True:
            page = self.get(f"{path}{first}limit=200{more}")
            items += page.get("items", [])
            token_of_more = page.get("metadata", {}).get("continue")
            if not token_of_more:
                return items
            more = f"&continue={quote(str(token_of_more), safe='')}"

    def _refused(self, error: urllib.error.HTTPError, method: str) -> AccountError:
        with error:
            try:
                answer: Any = json.loads(error.read())
                said, reason = str(answer.get("message", "")), str(answer.get("reason", ""))
            except (ValueError, AttributeError, OSError, http.client.HTTPException):
                said = reason = ""
        who = "give it an access entry (`orchestrator.admins`)" if error.code in (401, 403) else ""
        parts = (f"Kubernetes refuses with {error.code}", one_line(said or str(error.reason)), who)
        text = ": ".join(part for part in parts if part)
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR and method != "GET":
            # a proxy, or the API in its own trouble: what was asked may be under way
            return NoAnswerError(text.replace("Kubernetes refuses", "Kubernetes answers", 1))
        return RefusedError(text, error.code, reason)


def _words(reason: object) -> str:
    return one_line(str(reason)) or type(reason).__name__


def token(account: Account, cluster: str) -> str:
    """Return what proves to the cluster who asks: a signed question to STS, which EKS puts in our stead
    (kubernetes-sigs/aws-iam-authenticator, "API Authorization from Outside a Cluster")."""
    sts = account.client("sts")

    def name_it(request: Any, **_: Any) -> None:
        request.headers["x-k8s-aws-id"] = cluster

    sts.meta.events.register("before-sign.sts.GetCallerIdentity", name_it)
    try:
        address: str = sts.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    except AWS_ERRORS as error:
        raise AccountError(explain(error)) from None
    finally:
        sts.meta.events.unregister("before-sign.sts.GetCallerIdentity", name_it)
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def is_node(item: dict[str, Any], node: Node) -> bool:
    """Return whether an object of the API is one of our nodes, by its instance id."""
    spec, metadata = item.get("spec", {}), item.get("metadata", {})
    names = (str(spec.get("providerID", "")).rpartition("/")[2], str(metadata.get("name", "")))
    return bool(node.id) and any(name == node.id or name.endswith(f"-{node.id}") for name in names)

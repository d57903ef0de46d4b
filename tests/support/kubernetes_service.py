"""A Kubernetes API over TLS, as far as a wait asks it."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hyperpod_service import account, answer

from ultracluster.account.aws import Account
from ultracluster.account.kubernetes_api import KubernetesApi


def kubernetes_node(name: str, ready: str = "True", **offered: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"providerID": f"aws:///us-east-2a/{name}" if name.startswith("i-") else ""},
        "status": {
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": ready, "message": "container runtime network not ready"},
            ],
            "allocatable": {"cpu": "190", "vpc.amazonaws.com/efa": "16", "nvidia.com/gpu": "8", **offered},
        },
    }


class Api:
    """An API server over TLS.

    Attributes:
        objects: status and body by method and path.
        asked: method, path and body of each request.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.endpoint = self.authority = ""


@contextmanager
def serving(folder: Path) -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            api.asked.append((self.command, self.path, body))
            status, found = api.objects.get(
                (self.command, self.path.split("?")[0]), (404, {"message": "none"})
            )
            if not self.headers.get("Authorization", "").startswith("Bearer k8s-aws-v1."):
                status, found = 401, {"message": "Unauthorized"}
            found = found(self.path, body) if callable(found) else found
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = do_POST = do_DELETE = _do  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with tls_server(folder, Handler) as (api.endpoint, api.authority):
        yield api


@contextmanager
def tls_server(folder: Path, handler: type[BaseHTTPRequestHandler]) -> Iterator[tuple[str, str]]:
    """A server on loopback: its address, and the authority as EKS tells it, in base64."""
    key, authority = certificate(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield (
            f"https://127.0.0.1:{server.server_address[1]}",
            base64.b64encode(authority.read_bytes()).decode(),
        )
    finally:
        server.shutdown()
        server.server_close()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate for 127.0.0.1 that nobody but this test trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "key.pem", folder / "certificate.pem"
    files[0].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    files[1].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return files


def serve_cluster(made: Account, api: Api) -> None:
    """Let DescribeCluster tell where the API is."""

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        authority = {"data": api.authority}
        return {
            "cluster": {"name": asked["name"], "endpoint": api.endpoint, "certificateAuthority": authority}
        }

    answer(made.client("eks"), "DescribeCluster", describe)


def open_api(api: Api) -> KubernetesApi:
    made = account("us-east-2")
    serve_cluster(made, api)
    return KubernetesApi(made, "train")

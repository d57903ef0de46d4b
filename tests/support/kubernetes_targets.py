"""A Kubernetes API that lists and watches nodes and pods, with their exporters, for a real Prometheus.

Exporters listen where the objects say, on addresses of the loopback network: what Prometheus makes of a
node's address and a pod's annotations is not changed for the test. Objects are judged by Kubernetes' own
schemas. A list can be asked for as the beginning of a watch (Kubernetes API Concepts, "Streaming lists").
"""

from __future__ import annotations

import json
import os
import queue
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kubernetes_validate

Object = dict[str, Any]


def address(number: int) -> str:
    """One of this process' own on the loopback network."""
    process = os.getpid()
    return f"127.{16 + process % 200}.{process // 200 % 250}.{number}"


def node(name: str, ip: str, labels: Mapping[str, str], *, provider: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"providerID": provider},
        "status": {
            "addresses": [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    ip: str,
    *,
    namespace: str,
    on: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    ports: tuple[int, ...] = (),
    phase: str = "Running",
) -> Object:
    container: dict[str, Any] = {"name": "one", "image": "example.com/one:1"}
    if ports:
        container["ports"] = [{"containerPort": port, "protocol": "TCP"} for port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "uid": f"uid-of-{name}",
        },
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": phase, "podIP": ip, "hostIP": "127.0.0.1"},
    }


class KubernetesApi:
    """Lists, and watches that tell what changes.

    Attributes:
        url: where it answers, without TLS.
        asked: paths, each once.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: set[str] = set()
        self._objects: list[Object] = []
        self._watches: list[tuple[str, queue.Queue[Object]]] = []
        self._version = 1
        self._lock = threading.Lock()

    def add(self, *objects: Object, change: str = "ADDED") -> None:
        """Adds them, or tells those who watch of another change (`MODIFIED`, `DELETED`)."""
        for given in objects:
            kubernetes_validate.validate(given, "1.34", strict=True)
            with self._lock:
                self._version += 1
                metadata = {**given["metadata"], "resourceVersion": str(self._version)}
                one = {**given, "metadata": metadata}
                if change != "ADDED":
                    self._objects = [known for known in self._objects if _key(known) != _key(one)]
                if change != "DELETED":
                    self._objects.append(one)
                for path, told in self._watches:
                    if path in _lists(one):
                        told.put({"type": change, "object": one})

    def listed(self, path: str) -> Object:
        kind = "NodeList" if path.endswith("/nodes") else "PodList"
        items = [one for one in self._objects if path in _lists(one)]
        metadata = {"resourceVersion": str(self._version)}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "items": items}

    def watch(self, path: str, *, initial: bool) -> queue.Queue[Object]:
        told: queue.Queue[Object] = queue.Queue()
        with self._lock:
            if initial:
                listed = self.listed(path)
                for one in listed["items"]:
                    told.put({"type": "ADDED", "object": one})
                told.put({"type": "BOOKMARK", "object": _end_of_list(listed)})
            self._watches.append((path, told))
        return told


def _end_of_list(listed: Object) -> Object:
    metadata = {**listed["metadata"], "annotations": {"k8s.io/initial-events-end": "true"}}
    kind = listed["kind"].removesuffix("List")
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def _key(one: Object) -> tuple[str, str, str]:
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _lists(one: Object) -> tuple[str, ...]:
    """Paths that list an object."""
    if one["kind"] == "Node":
        return ("/api/v1/nodes",)
    return ("/api/v1/pods", f"/api/v1/namespaces/{one['metadata']['namespace']}/pods")


@contextmanager
def kubernetes_api() -> Iterator[KubernetesApi]:
    api, ended = KubernetesApi(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, asked = self.path.partition("?")
            api.asked.add(path)
            if not path.endswith(("/nodes", "/pods")):
                self._begin(404, {"Content-Length": "0"})
                return
            if "watch=" not in asked:
                body = json.dumps(api.listed(path)).encode()
                self._begin(200, {"Content-Length": str(len(body))})
                self.wfile.write(body)
                return
            told = api.watch(path, initial="sendInitialEvents=true" in asked)
            self._begin(200, {"Transfer-Encoding": "chunked"})
            while not ended.is_set():
                try:
                    event = json.dumps(told.get(timeout=0.2)).encode() + b"\n"
                except queue.Empty:
                    continue
                self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                self.wfile.flush()

        def _begin(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with _serving("127.0.0.1", 0, Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield api
        ended.set()


@contextmanager
def exporter(
    ip: str,
    port: int,
    text: str,
    *,
    path: str = "/metrics",
    token: str = "",
    certificate: Path | None = None,
    elsewhere: str = "",
) -> Iterator[None]:
    """Serves an exposition, with a token only to who has it, with a certificate over TLS; or a redirect."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = not token or self.headers.get("Authorization") == f"Bearer {token}"
            body = text.encode() if allowed and self.path == path else b""
            self.send_response(302 if elsewhere else 200 if body else 403)
            if elsewhere:
                self.send_header("Location", elsewhere)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with _serving(ip, port, Handler, certificate):
        yield


@contextmanager
def _serving(
    ip: str, port: int, handler: type[BaseHTTPRequestHandler], certificate: Path | None = None
) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer((ip, port), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a scrape that was given up
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_name("key.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()

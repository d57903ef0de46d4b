"""The agent of a node as its unit starts it: a real Prometheus with the configuration of the node."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from metrics_stand.versions import NoPrometheusError, tools
from needs import path_of
from project import ROOT

FILES = ROOT / "lifecycle_scripts" / "files"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "example",
    "AWS_REGION": "us-east-1",
}


def tool(name: str) -> str:
    """Path of a program of Debian's packages; the test is skipped where it is not installed."""
    return path_of(name)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Node:
    """The folders of a node below `root`, as the steps leave them."""

    def __init__(self, root: Path, told: dict[str, Any], *, keep: dict[str, list[str]] | None = None) -> None:
        self.root = root
        self.home = root / "opt/ultracluster/metrics_agent"
        self.home.mkdir(parents=True)
        for name, place in (
            ("metrics_agent.py", "configuration.py"),
            ("metrics_place.py", "metrics_place.py"),
        ):
            shutil.copy(FILES / name, self.home / place)
        self.metrics = root / "opt/ultracluster/metrics"
        self.metrics.mkdir()
        shipped = ROOT / "lifecycle_scripts/metrics/keep.json"
        (self.metrics / "keep.json").write_text(shipped.read_text() if keep is None else json.dumps(keep))
        self.run, self.state = root / "run/agent", root / "var/lib/agent"
        self.written = root / "var/lib/ultracluster/metrics"
        for folder in (self.run, self.state, self.written):
            folder.mkdir(parents=True)
        self.tell(told)

    def tell(self, told: dict[str, Any]) -> None:
        (self.home / "told.json").write_text(json.dumps(told))

    def has(self, path: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).touch()

    def configure(self, *arguments: str, path: str = "/nonexistent") -> subprocess.CompletedProcess[str]:
        """Run what the unit runs before the agent.

        Args:
            path: where commands of Slurm and systemctl are.
        """
        environment = {
            "PATH": path,
            "ULTRACLUSTER_ROOT": str(self.root),
            "RUNTIME_DIRECTORY": str(self.run),
            "STATE_DIRECTORY": str(self.state),
        }
        command = [sys.executable, "-ISB", str(self.home / "configuration.py"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    @property
    def configuration(self) -> dict[str, Any]:
        return json.loads((self.run / "prometheus.yml").read_text())

    @property
    def settings(self) -> dict[str, Any]:
        return json.loads((self.metrics / "settings.json").read_text())

    def log_bytes(self) -> int:
        """What the agent keeps on disk."""
        return sum(file.stat().st_size for file in self.state.rglob("*") if file.is_file())


def agent_command(program: str, *, version: str, config: Path, storage: Path, port: int) -> list[str]:
    """ExecStart of the agent's unit, with other places; before Prometheus 3 agent mode was a feature."""
    text = (FILES / "metrics_agent.service").read_text().replace("\\\n", " ")
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert found
    given = {
        "--config.file": str(config),
        "--storage.agent.path": str(storage),
        "--web.listen-address": f"127.0.0.1:{port}",
    }
    words = [program]
    for word in shlex.split(found[1])[1:]:
        name, _, value = word.partition("=")
        if word == "--agent" and version.startswith("2."):
            words.append("--enable-feature=agent")
        elif name in given:
            words.append(f"{name}={given.pop(name)}")
        else:
            words.append(f"{name}={value}" if value else name)
    assert not given, f"the unit does not say {', '.join(given)}"
    return words


class Agent:
    """A running agent."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.is_cut = False

    def power_cut(self) -> None:
        """End it without a word."""
        self.is_cut = True
        self.process.kill()
        self.process.wait()

    def metric(self, name: str) -> float:
        """Sum of a metric of its own; 0 where it has none yet."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        values = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, values))

    @property
    def peak_bytes(self) -> int:
        """The most memory that it had at a time."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.MULTILINE)
        assert found
        return int(found[1]) * 1024


@contextmanager
def running(node: Node, document: dict[str, Any], *, release: str = "installed") -> Iterator[Agent]:
    """The agent with this configuration, until the end of the block.

    Args:
        node: whose folders it has.
        document: the node's configuration, with the ports of this test.
        release: which Prometheus, as `metrics_stand` names them.
    """
    try:
        program, port = tools(release).prometheus, free_port()
    except NoPrometheusError as error:
        pytest.skip(str(error))
    for one in document["scrape_configs"]:
        if one["job_name"] == "agent":
            one["static_configs"][0]["targets"] = [f"127.0.0.1:{port}"]
    config = node.run / "test.yml"
    config.write_text(json.dumps(document))
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[2]
    command = agent_command(program, version=version, config=config, storage=node.state, port=port)
    environment = {
        **CREDENTIALS,
        "PATH": os.environ["PATH"],
        "GOMAXPROCS": "2",
        "GOMEMLIMIT": "400MiB",
        "HOME": str(node.root),
    }
    with (node.root / "agent.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True)
        try:
            yield (agent := Agent(process, port))
            assert agent.is_cut or process.poll() is None, (node.root / "agent.log").read_text()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def exposition(text: Any, content_type: str = "text/plain; version=0.0.4") -> Iterator[int]:
    """An exporter that answers with `text(path)`; the port that it listens at."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(self.path).encode()
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # one that is scraped too slowly is hung up on
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()

"""Prometheus, alert manager and what stands around them, for the time of a test."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ruamel.yaml import YAML

from metrics_stand.faster import faster_routes, faster_rules
from metrics_stand.servers import Notification, Shelf, serving
from metrics_stand.versions import program, tools

T = TypeVar("T")
PATIENCE = 600
"""Seconds until something that must come is given up: the machine may have much else to do."""


@dataclass
class Stand:
    """A running one."""

    folder: Path
    shelf: Shelf
    url: str = ""
    """Of Prometheus."""
    alert_manager_url: str = ""
    targets: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @property
    def told(self) -> list[Notification]:
        """Everything that was published, oldest first."""
        return self.shelf.published

    def serve(self, path: str, text: str, *, job: str = "", labels: Mapping[str, str] | None = None) -> None:
        """Makes `text` the exposition at `path`, a target from now on; later calls only change the text."""
        self.shelf.texts[path] = text if text.endswith("\n") else f"{text}\n"
        if path not in self.targets:
            self.targets[path] = {"job": job, **(labels or {}), "__metrics_path__": f"/{path}"}
            self._write_targets()

    def fail(self, path: str) -> None:
        """The target stays, and answers 404 until it is served again."""
        self.shelf.texts.pop(path, None)

    def forget(self, path: str) -> None:
        """The target is gone, and with it every series of its own."""
        self.shelf.texts.pop(path, None)
        self.targets.pop(path, None)
        self._write_targets()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query: `metric` (labels) and `value` (a float).

        Raises:
            ValueError: Prometheus refuses the expression.
        """
        answer = self._ask("/api/v1/query", query=expression)
        result = answer["data"]["result"]
        if answer["data"]["resultType"] == "scalar":
            return [{"metric": {}, "value": float(result[1])}]
        return [{"metric": row["metric"], "value": float(row["value"][1])} for row in result]

    def query_range(self, expression: str, *, seconds: int = 60, step: int = 1) -> list[dict[str, Any]]:
        """The series of a range query over the last seconds, as the API gives them."""
        now = time.time()
        asked = {"query": expression, "start": now - seconds, "end": now, "step": step}
        return self._ask("/api/v1/query_range", **asked)["data"]["result"]

    def metric_names(self) -> set[str]:
        """All that have been scraped or recorded."""
        return set(self._ask("/api/v1/label/__name__/values")["data"])

    def firing(self) -> list[dict[str, str]]:
        """Labels of the alerts that fire, sorted by name."""
        found = [
            one["labels"] for one in self._ask("/api/v1/alerts")["data"]["alerts"] if one["state"] == "firing"
        ]
        return sorted(found, key=lambda labels: labels["alertname"])

    def rule_errors(self) -> dict[str, str]:
        """What rules failed with, by name."""
        groups = self._ask("/api/v1/rules")["data"]["groups"]
        return {
            rule["name"]: error
            for group in groups
            for rule in group["rules"]
            if (error := rule.get("lastError"))
        }

    def until(self, what: Callable[[], T], seconds: float = PATIENCE) -> T:
        """What `what` returns as soon as it is true.

        Raises:
            TimeoutError: it never was.
        """
        end = time.monotonic() + seconds
        while not (found := what()):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s; firing: {self.firing()}; told: {self.told}")
            time.sleep(0.1)
        return found

    def _write_targets(self) -> None:
        address = f"127.0.0.1:{self.shelf.port}"
        rows = [{"targets": [address], "labels": labels} for labels in self.targets.values()]
        new = self.folder / "targets.new"
        new.write_text(json.dumps(rows))
        new.rename(self.folder / "targets.json")

    def _ask(self, path: str, **arguments: object) -> dict[str, Any]:
        url = f"{self.url}{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 (of our own server)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode()) from None


@contextmanager
def metrics_stand(
    *, rules: Mapping[str, str] | None = None, alert_manager: str | None = None, version: str = "installed"
) -> Iterator[Stand]:
    """A stand that scrapes and evaluates every second.

    Args:
        rules: files of rules by name, as `rule_groups` gives them; shortened by `faster_rules`.
        alert_manager: AMP's definition, whose SNS receivers publish to the stand; without it nobody is told.
        version: which Prometheus, of `VERSIONS`.

    Raises:
        NoPrometheusError: it is not there.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metrics-stand-")))
        stand = Stand(folder=folder, shelf=stack.enter_context(serving(Shelf())))
        stand._write_targets()
        if alert_manager is not None:
            stand.alert_manager_url = _alert_manager(stack, stand, alert_manager)
        for name, text in (rules or {}).items():
            (folder / f"{name}.rules.yml").write_text(faster_rules(text))
        configuration = folder / "prometheus.yml"
        configuration.write_text(json.dumps(_configuration(folder, stand.alert_manager_url)))
        command = [
            tools(version).prometheus, f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--query.lookback-delta=5s", "--rules.alert.resend-delay=1s", "--log.level=warn",
        ]  # fmt: skip
        stand.url = _started(stack, folder, "prometheus", command)
        yield stand


def _configuration(folder: Path, alert_manager: str) -> dict[str, Any]:
    managers = (
        [{"static_configs": [{"targets": [alert_manager.removeprefix("http://")]}]}] if alert_manager else []
    )
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [f"{folder}/*.rules.yml"],
        "alerting": {"alertmanagers": managers},
        "scrape_configs": [
            {
                "job_name": "unnamed",
                "file_sd_configs": [{"files": [f"{folder}/targets.json"], "refresh_interval": "1s"}],
                # an agent of a node scrapes 127.0.0.1, and drops it
                "relabel_configs": [{"target_label": "instance", "replacement": "127.0.0.1"}],
            }
        ],
    }


def _alert_manager(stack: ExitStack, stand: Stand, definition: str) -> str:
    """Starts one with the inner configuration, its SNS pointed at the stand."""
    yaml = YAML(typ="safe")
    outer = yaml.load(definition)
    inner = yaml.load(faster_routes(outer["alertmanager_config"]))
    for name, text in outer.get("template_files", {}).items():
        (stand.folder / f"{name}.tmpl").write_text(text)
    inner["templates"] = [str(stand.folder / f"{name}.tmpl") for name in outer.get("template_files", {})]
    for receiver in inner["receivers"]:
        for one in receiver["sns_configs"]:
            one["api_url"] = f"http://127.0.0.1:{stand.shelf.port}"
            one["sigv4"] |= {"access_key": "AKIDEXAMPLE", "secret_key": "example"}
    file = stand.folder / "alertmanager.yml"
    file.write_text(json.dumps(inner))
    command = [
        program("prometheus-alertmanager", "alertmanager"), f"--config.file={file}",
        f"--storage.path={stand.folder / 'alertmanager'}", "--cluster.listen-address=", "--log.level=warn",
    ]  # fmt: skip
    return _started(stack, stand.folder, "alertmanager", command)


def _started(stack: ExitStack, folder: Path, name: str, command: Sequence[str]) -> str:
    """The URL of a server once it is ready; tried again where another process took its port first."""
    log = folder / f"{name}.log"
    for _ in range(5):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            url = f"127.0.0.1:{one.getsockname()[1]}"
        with log.open("a") as written:
            process = subprocess.Popen(
                [*command, f"--web.listen-address={url}"], stdout=written, stderr=written
            )
        stack.callback(_end, process)
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://{url}/-/ready", timeout=5):
                    return f"http://{url}"
            except OSError:
                time.sleep(0.05)
    raise RuntimeError(f"{name} does not start: {log.read_text()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()

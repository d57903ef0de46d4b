"""The alert manager's definition: amtool takes it, messages go where they should, symptoms say nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from metrics_fleet import observed
from metrics_stand.versions import program
from ruamel.yaml import YAML

from ultracluster.metrics.alert import alerts
from ultracluster.metrics.routing import alert_manager

TOPIC = "arn:aws:sns:us-east-1:111122223333:alerts"
FIVE_DAYS = {"h": 5 * 24, "d": 5}


@pytest.fixture(scope="module")
def outer() -> dict[str, Any]:
    return YAML(typ="safe").load(alert_manager(observed("prod"), topic_arn=TOPIC, region="us-east-1"))


@pytest.fixture
def file(outer: dict[str, Any], tmp_path: Path) -> Path:
    """The inner configuration with its templates, as an alert manager of one's own would read it."""
    for name, text in outer["template_files"].items():
        (tmp_path / name).write_text(text)
    file = tmp_path / "alertmanager.yml"
    file.write_text(outer["alertmanager_config"])
    return file


def amtool(*arguments: str | Path) -> str:
    command = [program("amtool"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_amtool_takes_it(file: Path) -> None:
    said = amtool("check-config", file)

    assert "SUCCESS" in said
    assert "1 templates" in said
    assert "3 receivers" in said


@pytest.mark.slow
@pytest.mark.parametrize("severity", ["page", "ticket", "info"])
def test_each_severity_has_its_receiver(file: Path, severity: str) -> None:
    said = amtool("config", "routes", "test", f"--config.file={file}", f"severity={severity}", "alertname=X")

    assert said.strip() == severity


def test_it_holds_what_amp_takes(outer: dict[str, Any]) -> None:
    """AMP User Guide: no api_url and no http_config, a Region, five days at most; a standard topic."""
    inner = YAML(typ="safe").load(outer["alertmanager_config"])

    assert set(outer) == {"template_files", "alertmanager_config"}
    assert inner["templates"] == list(outer["template_files"])
    for receiver in inner["receivers"]:
        assert set(receiver) == {"name", "sns_configs"}
        (one,) = receiver["sns_configs"]
        assert one["sigv4"] == {"region": "us-east-1"}
        assert not {"api_url", "http_config"} & set(one)
        assert all(one["attributes"].values()), "SNS refuses an attribute without a value"
    for route in inner["route"]["routes"]:
        time = route["repeat_interval"]
        assert int(time[:-1]) <= FIVE_DAYS[time[-1]]


def test_alerts_of_a_rack_or_a_job_are_one_message(outer: dict[str, Any]) -> None:
    assert YAML(typ="safe").load(outer["alertmanager_config"])["route"]["group_by"] == ["cluster", "scope"]


def test_every_alert_that_hides_or_is_hidden_exists(outer: dict[str, Any]) -> None:
    inner = YAML(typ="safe").load(outer["alertmanager_config"])
    names = {alert.name for alert in alerts()}
    for rule in inner["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            match = re.fullmatch(r'alertname(=~|=|!=)"(.*)"', matcher)
            if match:
                pattern = re.compile(match[2])
                assert any(pattern.fullmatch(name) for name in names), matcher
                for name in re.findall(r"[A-Z]\w+", re.sub(r"\([^)]*\)", "", match[2])):
                    assert any(one.startswith(name) for one in names), name


def test_a_token_of_the_cdk_passes_through() -> None:
    topic = "${Token[TOKEN.123]}"
    text = alert_manager(observed("prod"), topic_arn=topic, region="eu-west-1")

    assert text.count(topic) == 3

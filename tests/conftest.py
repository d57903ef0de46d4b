"""Shared fixtures: one jsii kernel per worker, one synth per environment."""

from __future__ import annotations

import os

import pytest
from project import ROOT

if (ROOT / "constructs" / "__init__.py").exists():  # nothing later could explain the ImportError
    raise pytest.UsageError("delete constructs/__init__.py: it shadows the distribution `constructs`")

from collections.abc import Callable
from functools import cache

from templates import Synthesised, synthesise

from ultracluster.config import load


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """In CI a skipped test is a failed one: what is skipped there is proven nowhere."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("ULTRACLUSTER_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"skipped although ULTRACLUSTER_NO_SKIPS is set: {report.longrepr}"


@pytest.fixture(scope="session")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Synthesised]:
    """Gives the assembly of a shipped environment, with strict validation and cdk-nag; made once."""

    @cache
    def get(name: str) -> Synthesised:
        config = load(ROOT / "environments" / f"{name}.yaml").environment
        return synthesise(config, tmp_path_factory.mktemp(name))

    return get

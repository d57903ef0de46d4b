"""What comes with a wheel: an SBOM with hashes of all that it requires; and what keeps the locks young."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from project import ROOT


@cache
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "tools" / "sbom.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_sbom_names_every_requirement_with_its_hashes() -> None:
    """CycloneDX's own schema has judged it: the tool raises where it does not pass."""
    document = json.loads(tool().sbom())
    parts = {part["name"]: part for part in document["components"]}
    pins = pinned("requirements.lock")

    assert len(pins) > 20
    assert {name: part["version"] for name, part in parts.items() if name != "aws-cdk"} == pins
    assert all(
        [one["hashes"] for one in part["externalReferences"]]
        for name, part in parts.items()
        if name != "aws-cdk"
    )
    assert len(parts["aws-cdk"]["hashes"][0]["content"]) == 128
    assert document["metadata"]["component"]["version"]
    assert "timestamp" not in document["metadata"]
    assert "serialNumber" not in document


@pytest.mark.slow
def test_what_is_no_sbom_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not CycloneDX 1\.6"):
        tool().judged('{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"name": "no type"}]}')


def test_every_lock_has_hashes_and_no_address() -> None:
    locks = sorted(ROOT.glob("requirements*.lock"))
    assert len(locks) == 9
    for lock in locks:
        text = lock.read_text()
        pins = re.findall(r"^\S+==\S+.*(?:\n {4}.*)*", text, re.MULTILINE)
        assert pins
        assert [pin for pin in pins if "--hash=sha256:" not in pin] == []
        assert "://" not in text
    npm = (ROOT / "package-lock.json").read_text()
    assert "://" not in npm
    packages = json.loads(npm)["packages"]
    assert [name for name, one in packages.items() if name and "integrity" not in one] == []
    assert [name for name, one in packages.items() if "resolved" in one] == []


def test_what_make_plan_installs_stays_as_it_is_when_more_is_installed() -> None:
    pins, wheel_builds = pinned("requirements.lock"), pinned("requirements-build.lock")

    assert pinned("requirements-plan.lock").items() <= pins.items()
    assert (pinned("requirements-plan.lock") | pins | wheel_builds).items() <= pinned(
        "requirements-dev.lock"
    ).items()


def pinned(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", (ROOT / lock).read_text(), re.MULTILINE))


@pytest.mark.slow
def test_what_renews_the_locks_is_configured_as_its_schema_asks() -> None:
    judged = subprocess.run(
        ["check-jsonschema", "--builtin-schema", "vendor.renovate", "renovate.json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.slow
def test_the_package_imports_nothing_that_only_tests_or_an_extra_bring() -> None:
    """Neither with the command nor with the constructs: what an extra brings is imported where it is used."""
    foreign = [
        "pytest",
        "hypothesis",
        "moto",
        "cfnlint",
        "cyclonedx",
        "univers",
        "pathspec",
        "debian",
        "diagrams",
        "sphinx",
    ]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({foreign!r})); "
        "import ultracluster.cli, ultracluster.app; "
        "[getattr(ultracluster, name) for name in ultracluster.__all__]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-800:]


def test_security_policy_names_what_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"`make ([a-z-]+)`", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for place in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (ROOT / place).is_file(), place

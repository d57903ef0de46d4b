"""The cache of assemblies: whatever decides what is synthesised decides where it is kept."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import assemblies
import pytest
from assemblies import HELPERS, SOURCES, environment_digest, source_files, sources_digest
from project import ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.config import load

FILES = (
    "constructs/ultracluster/a.py",
    "constructs/ultracluster/b/c.json",
    "stacks/d.py",
    "lifecycle_scripts/e.sh",
)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name in (*FILES, "package.json", *(f"tests/support/{name}" for name in HELPERS), "docs/x.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


@pytest.mark.parametrize("file", [*FILES, "package.json", *(f"tests/support/{name}" for name in HELPERS)])
def test_each_byte_of_the_sources_decides(file: str, sources: Path) -> None:
    before = sources_digest(sources, ("aws_cdk_lib-2.1.0",))
    assert sources_digest(sources, ("aws_cdk_lib-2.1.0",)) == before
    (sources / file).write_text("2")
    assert sources_digest(sources, ("aws_cdk_lib-2.1.0",)) != before


def test_names_modes_and_versions_decide_and_what_python_leaves_behind_does_not(sources: Path) -> None:
    versions = ("aws_cdk_lib-2.1.0",)
    digests = {sources_digest(sources, versions), sources_digest(sources, ("aws_cdk_lib-2.1.1",))}
    (sources / "stacks/__pycache__").mkdir()
    (sources / "stacks/__pycache__/d.pyc").touch()
    (sources / "docs/x.md").write_text("2")
    assert sources_digest(sources, versions) in digests
    (sources / "lifecycle_scripts/e.sh").chmod(0o755)
    digests.add(sources_digest(sources, versions))
    (sources / "stacks/d.py").rename(sources / "stacks/e.py")
    digests.add(sources_digest(sources, versions))
    (sources / "stacks/e.py").unlink()
    digests.add(sources_digest(sources, versions))
    assert len(digests) == 5


@pytest.mark.slow
def test_every_tracked_file_of_the_package_is_a_source() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", *SOURCES], capture_output=True, text=True, cwd=ROOT, check=True
    )
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    assert tracked <= {file.relative_to(ROOT).as_posix() for file in source_files(ROOT)}
    versions = " ".join(assemblies._versions())
    assert all(f" {name}-" in versions for name in ("aws_cdk_lib", "cdk_nag", "constructs", "jsii"))


def test_an_environment_is_kept_by_its_values_and_by_the_files_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "environments" / "dev.yaml"
    shutil.copytree(ROOT / "environments", file.parent)
    step = file.parent / "steps" / "10_own.sh"
    step.parent.mkdir(exist_ok=True)
    step.write_text("step_detect() { :; }\n")
    file.write_text(file.read_text() + "\nlifecycle_steps: [./steps/10_own.sh]\n")
    digests = [environment_digest(load(file).environment)]
    assert environment_digest(load(file).environment) == digests[0]
    step.write_text("step_detect() { true; }\n")
    digests.append(environment_digest(load(file).environment))
    file.with_suffix(".lock").write_text("{}")
    digests.append(environment_digest(load(file).environment))
    file.write_text(file.read_text().replace("protect: ", "protect:  ").replace("us-west-2", "us-east-1"))
    digests.append(environment_digest(load(file).environment))
    assert len(set(digests)) == 4


def test_a_value_decides() -> None:
    data = environment_data("dev")
    one, other = loaded(data).environment, loaded(changed(data, {"node_groups.gpu.count": 3})).environment
    assert environment_digest(one) != environment_digest(other)
    assert environment_digest(one) == environment_digest(loaded(data).environment)


def test_what_changes_while_tests_run_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: Path
) -> None:
    monkeypatch.setattr(assemblies, "ROOT", sources)
    for start, changed_since in ((float("inf"), False), (0.0, True)):
        monkeypatch.setattr(assemblies, "_run", {"place": tmp_path, "start": start})
        assert assemblies._changed_since_start() is changed_since


def test_a_checkout_that_is_read_only_keeps_them_in_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pytest_cache").touch()  # no folder can be made there, by root either
    monkeypatch.setattr(assemblies, "ROOT", tmp_path)
    monkeypatch.setattr(assemblies, "_run", {})
    assemblies.keep_in(tmp_path / "run", 1.0)
    assert assemblies._run == {"place": tmp_path / "run" / "assemblies", "start": 1.0}

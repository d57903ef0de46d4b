"""`doctor --bundle`: the list comes first, nothing is written unconfirmed, and names stay on this machine."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ultracluster.cli import doctor_bundle
from ultracluster.cli.doctor import doctor
from ultracluster.config import load

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"
LOG = "NVRM: Xid (PCI:0000:97:00): 79, GPU has fallen off the bus. /home/carol/x password=hunter2\n"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ultracluster" / "pseudonyms.key"


@pytest.fixture
def run() -> Callable[..., Any]:
    def invoke(file: Path, *words: str, given: str = "") -> Any:
        app = typer.Typer()
        app.command()(doctor)
        log = file.parent / "node.log"
        log.write_text(LOG)
        return CliRunner().invoke(
            app, [str(DEV), "--log", str(log), "--bundle", str(file), *words], input=given
        )

    return invoke


def test_the_list_is_shown_and_a_no_writes_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "a.tar.gz"
    for given in ("", "n\n"):
        result = run(file, given=given)
        assert result.exit_code == 2 and not file.exists()
        assert "given.log" in result.output and "secrets removed: 1 named" in result.output
    assert run(file, given="y\n").exit_code == 0 and file.exists()


def test_yes_writes_it_for_nobody_else_to_read(run: Callable[..., Any], tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "a.tgz"
    result = run(file, "--yes")
    assert result.exit_code == 0, result.output
    assert file.stat().st_mode & 0o777 == 0o600 and cache.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        names = [Path(name).name for name in archive.getnames()]
        texts = [archive.extractfile(name).read().decode() for name in archive.getnames()]  # pyright: ignore
    assert "carol" not in "".join(texts) and "hunter2" not in "".join(texts) and "Xid" in "".join(texts)
    assert all(f"{len(text.encode()):>10}  " in result.output for text in texts)
    assert " is carol" in result.output and set(names) <= set(result.output.replace("/", " ").split())


def test_a_second_bundle_calls_a_person_the_same_and_has_the_same_bytes(
    run: Callable[..., Any], tmp_path: Path, cache: Path
) -> None:
    first, second, third = (tmp_path / f"{name}.tar.gz" for name in "abc")
    for file in (first, second):
        assert run(file, "--yes").exit_code == 0
    assert first.read_bytes() == second.read_bytes()
    cache.unlink()
    assert run(third, "--yes").exit_code == 0
    assert first.read_bytes() != third.read_bytes()


def test_a_key_that_cannot_be_kept_is_a_remark(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = run(tmp_path / "a.tar.gz", "--yes")
    assert result.exit_code == 0 and "pseudonyms are those of this bundle only" in result.output


def test_json_has_the_files_and_the_digest(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "a.tar.gz"
    result = run(file, "--yes", "--json")
    found = json.loads(result.stdout)
    assert found["schema"] == "ultracluster.bundle/1"
    assert found["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert {"name", "bytes", "sha256"} == set(found["entries"][0]) and found["removed"] == {"named": 1}
    assert list(found["pseudonyms"].values()) == ["carol"]


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("a.zip", [], "name a file that ends in .tar.gz"),
        ("node.log", [], "name a file that ends in .tar.gz"),
        ("there.tar.gz", [], "it exists"),
        ("no/such/folder.tar.gz", [], "is no folder"),
        ("a.tar.gz", ["--reason", "ultracluster:xid:79"], "leave one of them out"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_asked(
    name: str, words: list[str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "there.tar.gz").write_text("old")
    app = typer.Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, [str(DEV), "--bundle", str(tmp_path / name), "--yes", *words])
    assert result.exit_code == 2 and says in result.output
    assert (tmp_path / "there.tar.gz").read_text() == "old"


def test_versions_say_what_runs() -> None:
    found = doctor_bundle.versions(load(DEV).environment)
    assert found["orchestrator"] == "hyperpod-slurm" and found["software_release"]
    assert found["node_groups"]["gpu"]["instance_type"]

"""`ultracluster release` and `ultracluster image`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import ultracluster as run
from project import ROOT

from ultracluster.cli import release_lock
from ultracluster.software import release_names
from ultracluster.software.lock import release_file
from ultracluster.supply.locking import Locked


def test_list_names_every_release() -> None:
    result = run("software", "show")
    heads = [line.split()[0] for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert heads == list(release_names())
    assert "all locked" in result.stdout.partition("\nhyperpod-slurm-")[0].partition("eks-2026.10")[2]
    assert "2 files not locked" in result.stdout.partition("hyperpod-slurm-2026.09")[2]
    rows = json.loads(run("software", "show", "--json").stdout)["releases"]
    assert [row["release"] for row in rows] == list(release_names())
    assert rows[0]["unlocked"][0] == "enroot: enroot_4.2.1-1_arm64.deb"
    assert rows[0]["families"][0] == "dlami"


def test_what_is_not_locked_is_said_file_by_file(tmp_path: Path) -> None:
    """Keys of repositories, too: a node installs nothing from a repository that it cannot check."""
    result = run("software", "show", "hyperpod-slurm-2026.09")
    table = result.stdout.partition("not locked: nodes refuse it")[2].partition("\nnotes\n")[0]
    assert "enroot_4.2.1-1_arm64.deb" in table
    assert "ubuntu22.04, ubuntu24.04 on aarch64" in table
    content = json.loads(release_file("2026.11").read_text())
    del content["components"]["dcgm"]["packages"][0]["repository"]["key_fingerprint"]
    file = tmp_path / "2026.11.lock"
    file.write_text(json.dumps(content))
    shown = run("software", "show", str(file)).stdout
    assert "ubuntu2204/x86_64/3bf863cc.pub  ubuntu22.04 on x86_64" in shown
    assert "6 files and 1 key not locked" in run("software", "show", "--check", str(file)).stdout
    assert run("software", "show", "eks-2026.10").stdout.count("not locked") == 0


def test_show_prints_every_component_with_its_source() -> None:
    result = run("software", "show", "2026.11")
    table = result.stdout.partition("\nnot locked")[0]
    lines = {line.split()[0]: line for line in table.splitlines() if line}
    release = json.loads(release_file("2026.11").read_text())
    for name, part in release["components"].items():
        assert part["version"] in lines[name]
        assert part["need"] in lines[name]
        assert lines[name].endswith(part["source"]), name
    assert "\x1b" not in result.stdout


def test_show_as_json_is_the_lock_file() -> None:
    shown = json.loads(run("software", "show", "2026.11", "--json").stdout)["release"]
    assert shown["schema"] == 2
    assert set(shown["components"]) == set(json.loads(release_file("2026.11").read_text())["components"])


def test_check_reports_every_constraint_with_its_citation() -> None:
    result = run("software", "show", "--check", "2026.11")
    assert result.returncode == 0
    assert "0 broken" in result.stdout.splitlines()[-1]
    assert result.stdout.splitlines()[-1].endswith("6 files not locked")
    assert "EC2 User Guide: Elastic Fabric Adapter release notes" in result.stdout


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("2026.11", ["libfabric 2.6.0amzn1.0"]),
        ("hyperpod-slurm-2026.09", ["libfabric 2.6.0amzn1.0"]),
        ("pcs-2026.07", ["libfabric 2.4.0amzn1.0", "aws-ofi-nccl 1.18.0"]),
        ("parallelcluster-3.16.1", ["libfabric 2.4.0amzn5.0", "aws-ofi-nccl 1.20.0"]),
        ("parallelcluster-3.16.3", ["libfabric 2.7.0amzn2.0", "aws-ofi-nccl 1.22.0"]),
        ("eks-2026.10", []),
    ],
)
def test_what_only_the_efa_installer_brings_is_named(name: str, alone: list[str]) -> None:
    assert json.loads(run("software", "show", "--check", name, "--json").stdout)["only_bundled"] == alone
    shown = run("software", "show", "--check", name).stdout
    assert (f"only with the EFA installer: {', '.join(alone)};" in shown) == bool(alone)


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_row_that_differs_from_its_record_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    text = release_file("2026.11").read_text()
    file = tmp_path / "2026.11.lock"
    file.write_text(text.replace("c9eaf0593567", "c9eaf0593568"))
    result = run("software", "show", "--check", str(file), *arguments)
    assert result.returncode == 2
    says = (
        f"{file}:{text[: text.index('c9eaf0593567')].count(chr(10)) + 1}: gdrcopy: the sha256 of gdrcopy-2.6"
    )
    if arguments:
        answer = json.loads(result.stdout)
        assert answer["contradictions"][0].startswith(says)
        assert answer["checked"] + len(answer["unrecorded"]) + 1 == answer["artefacts"]
    else:
        assert f"CONTRADICTION  {says}" in result.stdout


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_broken_release_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    content = json.loads(release_file("2026.11").read_text())
    content["components"]["fabric-manager"]["version"] = "580.0"
    file = tmp_path / "2026.11.lock"
    file.write_text(json.dumps(content))
    result = run("software", "show", "--check", str(file), *arguments)
    assert result.returncode == 2
    if arguments:
        broken = [row for row in json.loads(result.stdout)["constraints"] if row["state"] == "broken"]
        assert [row["id"] for row in broken] == ["SWC003"]
    else:
        assert "SWC003  BROKEN" in result.stdout
        assert "NVIDIA Fabric Manager" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["software", "show", "2026.10"], "the nearest is 2026.11"),
        (["software", "show", "--check", "nothing.lock"], "No such file"),
        (["software", "lock", "nothing.lock"], "No such file"),
        (["software", "lock"], "name either a lock file, or an environment"),
        (["software", "lock", "a.lock", "--for", "prod"], "name either a lock file, or an environment"),
        (["software", "lock", "--for", "prod", "--component", "enroot"], "--component goes with a lock file"),
        (["software", "lock", "--for", "nowhere"], "nowhere.yaml"),
        (["software", "mirror", "--bucket", "b", "--release", "1999.01"], "there is no release"),
        (["software", "mirror", "--bucket", "b"], "Pass either --release"),
        (["software", "mirror", "--release", "2026.11"], "Pass --bucket"),
        (
            ["software", "mirror", "--bucket", "b", "--release", "2026.11", "--component", "enroot"],
            "optional in this release are nccl-tests, nixl",
        ),
        (["software", "recipe", "--release", "1999.01", "--orchestrator", "pcs"], "there is no release"),
        (["software", "recipe", "--release", "2026.11", "--orchestrator", "nomad"], "nomad"),
        (
            ["software", "recipe", "--release", "2026.11", "--orchestrator", "pcs", "--mirror", "x"],
            "write it as s3://bucket/prefix",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mirror_of_what_is_not_locked_says_what_to_do() -> None:
    result = run(
        *("software", "mirror", "--bucket", "example-software", "--release", "2026.11"),
        *("--region", "us-east-1", "--dry-run"),
    )
    assert result.returncode == 1
    assert "run `ultracluster software lock` first" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the environment `prod` and, as in a new one, no lock."""
    (tmp_path / "environments").mkdir()
    text = (ROOT / "environments" / "prod.yaml").read_text()
    (tmp_path / "environments" / "prod.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["prod", "environments/prod.yaml"])
@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "is not JSON"), ('{"schema": 1}', "environment"), (
        '{"schema": 1, "environment": "dev", "release": "2026.11"}', "of environment dev, not prod: remove it"
    )],
)  # fmt: skip
def test_a_damaged_lock_is_refused_and_stays(name: str, content: str, says: str, folder: Path) -> None:
    lock = folder / "environments" / "prod.lock"
    lock.write_text(content)
    result = run("software", "lock", "--for", name, cwd=folder)
    assert result.returncode == 2
    assert says in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert lock.read_text() == content


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([], 0),
        (["unchanged"], 0),
        (["locked", "skipped"], 0),
        (["unchanged", "skipped"], 0),
        (["skipped"], 1),
        (["skipped", "skipped"], 1),
        (["locked", "failed"], 1),
        (["changed"], 1),
    ],
)
def test_a_lock_that_locked_nothing_it_was_asked_for_is_exit_code_1(
    states: list[Any], code: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [Locked("enroot", f"file{number}", state, "words") for number, state in enumerate(states)]
    monkeypatch.setattr("ultracluster.supply.environment_lock.lock_environment", lambda *_, **__: results)
    monkeypatch.setattr("ultracluster.cli.boot_image_account.asked_account", lambda *_: None)
    file = folder / "environments" / "prod.yaml"
    if not code:
        release_lock.lock(environment=file)
        return
    with pytest.raises(typer.Exit) as ended:
        release_lock.lock(environment=file)
    assert ended.value.exit_code == 1


def test_where_nothing_is_open_it_says_so(folder: Path) -> None:
    """TCP to Lustre, and all else is on the image or locked by the release: no file is made."""
    (folder / "environments" / "dev.yaml").write_text((ROOT / "environments" / "dev.yaml").read_text())
    (folder / "dev").mkdir()  # a folder of its name is not meant
    result = run("software", "lock", "--for", "dev", cwd=folder)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.strip() == "no file and no key is open: nothing to record"
    assert not (folder / "environments" / "dev.lock").exists()


@pytest.mark.parametrize("form", ["imagebuilder", "packer"])
def test_a_recipe_is_printed(form: str) -> None:
    result = run(
        "software", "recipe", "--release", "2026.11", "--orchestrator", "hyperpod-slurm", "--format", form
    )
    assert result.returncode == 0
    assert "bake.sh --release 2026.11 --family hyperpod-slurm --accelerator nvidia" in result.stdout

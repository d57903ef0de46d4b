"""`ultracluster diff ENV --against-version V`: what upgrading Ultracluster itself does to an environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from json_contract import check_document
from project import ROOT
from templates import Synthesised
from typer.testing import CliRunner, Result

import ultracluster
from ultracluster.change import other_version
from ultracluster.cli.main import app
from ultracluster.project import synth

NAME = "eks-p5en"
CHANGED = Path("constructs/ultracluster/network/efa_security_group.py")
NOW, THEN = '"EFA nodes: all traffic within the group"', '"EFA nodes of the older version"'
"""A text that cannot be changed in place: what a version that says it otherwise would cost is a new group."""
APP = Path("constructs/ultracluster/app.py")
CHECKED = "cdk.App(context=cdk_flags(),"
UNCHECKED = "cdk.App(context=cdk_flags(), builtin_cloud_formation_validation=False,"
"""The older version does not check its templates: that takes longer than all else."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose git tag v0.0.9 is a version with another text; its work tree is what is here."""
    root = tmp_path_factory.mktemp("older") / "checkout"
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True)
    for name in listed.stdout.split():
        if not name.startswith(("tests/", "docs/")) and (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name, follow_symlinks=False)
    text = (root / CHANGED).read_text()
    assert text.count(NOW) == 1
    (root / CHANGED).write_text(text.replace(NOW, THEN))
    text = (root / APP).read_text()
    assert CHECKED in text
    (root / APP).write_text(text.replace(CHECKED, UNCHECKED))
    who = ["-c", "user.name=A Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "older"], ["tag", "v0.0.9"]):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def wheel(older: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That version as a wheel has it: the package with stacks and scripts, and their executable bits."""
    file = tmp_path_factory.mktemp("wheel") / "ultracluster-0.0.9-py3-none-any.whl"
    package = older / "constructs" / "ultracluster"
    with zipfile.ZipFile(file, "w") as archive:
        for folder, into in (
            (package, "ultracluster"),
            (older / "stacks", "ultracluster/stacks"),
            (older / "lifecycle_scripts", "ultracluster/lifecycle_scripts"),
        ):
            for one in sorted(folder.rglob("*")):
                if one.is_file() and (folder != package or one.relative_to(package).parts[0] != "stacks"):
                    archive.write(one, f"{into}/{one.relative_to(folder)}")
        metadata = "Metadata-Version: 2.4\nName: ultracluster\nVersion: 0.0.9\n"
        archive.writestr("ultracluster-0.0.9.dist-info/METADATA", metadata)
    return file


@pytest.fixture(scope="module")
def python(older: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which that version is installed."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    (library,) = folder.glob("lib/python*/site-packages")
    (library / "a.pth").write_text(f"{older / 'constructs'}\n")
    (library / "b.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return folder


@pytest.fixture
def now(synthesised: Callable[[str], Synthesised], monkeypatch: pytest.MonkeyPatch) -> None:
    """What this version makes comes from the assembly of the run; what the other makes, from its app.py."""

    def run_app(
        root: Path, file: Path, out: Path, python: Path | None = None, packages: Sequence[Path] | None = None
    ) -> subprocess.CompletedProcess[str]:
        if python is None and packages is None:
            shutil.copytree(synthesised(NAME).folder, out, symlinks=True)
            return subprocess.CompletedProcess([], 0, "", "")
        return synth.run_app(root, file, out, python=python, packages=packages)

    monkeypatch.setattr(other_version, "run_app", run_app)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["diff", *words])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["revision", "wheel", "python"])
def test_an_upgrade_shows_what_it_changes(
    kind: str, older: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(older if kind == "revision" else ROOT)
    if kind != "wheel":  # one of them runs both versions
        request.getfixturevalue("now")
    version = "v0.0.9" if kind == "revision" else str(request.getfixturevalue(kind))

    result = run(NAME, "--against-version", version, "--json")

    assert result.exit_code == 1, result.output
    document = check_document(result.stdout)
    changed = {one["path"]: one for one in document["changes"] if one["type"] == "AWS::EC2::SecurityGroup"}
    texts = changed["GroupDescription"]
    assert (texts["before"], texts["after"]) == (THEN.strip('"'), NOW.strip('"'))
    assert texts["verdict"] == document["verdict"] == "replaced"
    differing = [one["path"] for one in document["changes"] if one["before"] != one["after"]]
    assert differing == ["GroupDescription"], "all else only follows from it"
    assert document["after"] == f"{NAME} by ultracluster {ultracluster.__version__}"
    label = {"revision": "at v0.0.9 (", "wheel": "0.0.9 (ultracluster-0.0.9-py3", "python": f"({older}"}[kind]
    assert label in document["before"]
    assert "aws-cdk-lib" in document["notes"][1]


@pytest.mark.slow
@pytest.mark.usefixtures("now")
def test_a_version_that_cannot_read_the_file_says_so(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file here has a value that the older version refuses."""
    monkeypatch.chdir(older)
    newer = older / "environments" / "newer.yaml"
    text = f"extends: {NAME}.yaml\nname: newer\nacknowledge:\n"
    text += "  - {rule: CPY002, reason: it is compared and never deployed}\n"
    newer.write_text(text)
    broken = older / "constructs" / "ultracluster" / "config" / "environment.py"
    broken.write_text(f'{broken.read_text()}\nraise SystemExit("no such key here yet")\n')
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qam", "cannot read"],
        cwd=older, check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(older)},
    )  # fmt: skip
    try:
        result = run("newer", "--against-version", "HEAD")
    finally:
        newer.unlink()
        subprocess.run(["git", "reset", "-q", "--hard", "v0.0.9"], cwd=older, check=True)

    assert result.exit_code == 2
    assert "newer cannot be synthesised by ultracluster at HEAD" in result.stderr
    assert "no such key here yet" in result.stderr
    assert "synthesise the file of that time" in result.stderr
    assert "Traceback" not in result.stderr


def refused(*words: str) -> str:
    result = run(NAME, "--against-version", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


@pytest.mark.slow
def test_what_is_no_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    wheels = {name: tmp_path / f"{name}-1-py3-none-any.whl" for name in ("broken", "other", "old", "absent")}
    wheels["broken"].write_text("no zip file")
    for name, member in (("other", "other/__init__.py"), ("old", "ultracluster/__init__.py")):
        with zipfile.ZipFile(wheels[name], "w") as archive:
            archive.writestr(member, "")
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    (tmp_path / "notes.txt").touch()

    assert "cannot be read as a wheel" in refused(str(wheels["broken"]))
    assert "cannot be read as a wheel" in refused(str(wheels["absent"]))
    assert "is not a wheel of Ultracluster" in refused(str(wheels["other"]))
    assert "name the git revision that it was built from" in refused(str(wheels["old"]))
    assert "no ultracluster is installed there" in refused(str(bare))
    assert "no ultracluster is installed there" in refused(str(bare / "bin" / "python"))
    assert "neither a wheel" in refused(str(tmp_path / "notes.txt"))
    assert "neither a wheel" in refused(str(tmp_path / "nowhere"))
    assert f"git knows no such revision in {ROOT}" in refused("v99.0.0")


def test_two_ways_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    for more in (["--against", "HEAD"], ["--deployed"]):
        assert "in one of these ways" in refused("v1", *more)
    result = run("dev", "prod", "--against-version", "v1")
    assert (result.exit_code, "in one of these ways" in result.stderr) == (2, True)


def test_a_repository_without_a_checkout_has_no_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with an installed wheel: the package lies in no checkout."""
    (tmp_path / "environments").mkdir()
    shutil.copy(ROOT / "environments" / f"{NAME}.yaml", tmp_path / "environments")
    (tmp_path / "app.py").touch()
    (tmp_path / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(other_version, "SOURCE", tmp_path / "lib")

    assert "there is no checkout of Ultracluster here" in refused("v1.0.0")

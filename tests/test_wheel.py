"""What a second team gets: the built wheel, in an empty environment, away from the source tree."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from project import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what is tracked, so that nothing else slips in."""
    copy = tmp_path_factory.mktemp("source")
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, capture_output=True, text=True, cwd=ROOT, check=True)
    for name in listed.stdout.split():
        if not (ROOT / name).exists():
            continue  # deleted, not yet committed
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)  # stacks/ is linked into the package
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(copy / "dist"),
        str(copy),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies, but not this checkout or an editable install."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (library,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(library)
    # dependencies are those of the lock file, installed once for all tests; the editable install is hidden
    ours = Path(sysconfig.get_paths()["purelib"])
    for entry in ours.iterdir():
        if not entry.name.startswith(("ultracluster", "_editable_impl_ultracluster", "__pycache__")):
            target = library / entry.name
            if not target.exists() and entry.suffix != ".pth":
                target.symlink_to(entry)
    return folder


def test_only_one_top_level_name(wheel: Path) -> None:
    result = subprocess.run(
        ["check-wheel-contents", "--toplevel", "ultracluster", str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout


def test_data_types_and_scripts_travel_along(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}

    assert {
        "ultracluster/py.typed",
        "ultracluster/catalog/instances.json",
        "ultracluster/catalog/prices.csv",
    } <= names
    assert "ultracluster/config/environment.schema.json" in names
    entry = "ultracluster/lifecycle_scripts/hyperpod_on_init_complete.sh"
    assert modes[entry] & stat.S_IXUSR


def test_the_own_app_example_synthesises_with_the_wheel_alone(site: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "own_app" / "app.py", tmp_path / "app.py")

    made = _run(site, tmp_path, "app.py")

    assert made.returncode == 0, made.stderr[-2000:]
    template = json.loads((tmp_path / "out" / "research.template.json").read_text())
    kinds = {resource["Type"] for resource in template["Resources"].values()}
    assert {"AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupEgress", "AWS::KMS::Key"} <= kinds


def test_scripts_and_command_work_from_the_wheel(site: Path, tmp_path: Path) -> None:
    code = (
        "import ultracluster, sys; from ultracluster.scripts_folder import scripts_folder\n"
        f"assert str(scripts_folder()).startswith({str(site)!r}), scripts_folder()\n"
        f"assert ultracluster.__file__.startswith({str(site)!r})\n"
        "from ultracluster.cli import main; sys.argv[1:] = ['rules']; main()"
    )
    (tmp_path / "check.py").write_text(code)

    made = _run(site, tmp_path, "check.py")

    assert made.returncode == 0, made.stderr[-2000:]
    assert "GRP011" in made.stdout


def _run(site: Path, folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "CDK_OUTDIR": str(folder / "out"),
    }
    python = site / "bin" / "python"
    return subprocess.run(
        [python, program], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )

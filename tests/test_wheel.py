"""What a second team gets: the built wheel, in an empty environment, away from the source tree."""

from __future__ import annotations

import stat
import subprocess
import zipfile
from pathlib import Path

from wheel import run_in


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
    assert "ultracluster/cli/schemas/plan.json" in names
    assert {
        "ultracluster/stacks/environment.py",
        "ultracluster/cdk_flags.json",
        "ultracluster/app.py",
    } <= names
    assert {"ultracluster/package.json", "ultracluster/project/template/github.yml.txt"} <= names
    entry = "ultracluster/lifecycle_scripts/hyperpod_on_init_complete.sh"
    assert modes[entry] & stat.S_IXUSR


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
    return run_in(site, folder, "python", program, CDK_OUTDIR=str(folder / "out"))

"""The wheel, and an environment that has it: built once for all workers of a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from project import ROOT


def built_wheel(base: Path) -> Path:
    """The wheel, built from a copy of what is tracked, so that nothing else slips in."""
    copy = base / "source"
    with _locked(base):
        if not list(base.glob("dist/*.whl")):
            _copy(copy)
            build = [
                sys.executable,
                "-m",
                "build",
                "--wheel",
                "--no-isolation",
                "--outdir",
                str(base / "dist"),
            ]
            subprocess.run([*build, str(copy)], check=True, capture_output=True)
    (built,) = base.glob("dist/*.whl")
    return built


def _copy(into: Path) -> None:
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, capture_output=True, text=True, cwd=ROOT, check=True)
    for name in listed.stdout.split():
        if not (ROOT / name).exists():
            continue  # deleted, not yet committed
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)  # stacks/ is linked into the package


def site_with(wheel: Path, base: Path) -> Path:
    """An environment with the wheel and its dependencies, but not this checkout or an editable install.

    pip installs the wheel. Dependencies are those of the lock file, installed once for all tests, by links.
    """
    folder = base / "site"
    with _locked(base):
        if not (folder / "bin" / "ultracluster").exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
            (library,) = folder.glob("lib/python*/site-packages")
            ours = Path(sysconfig.get_paths()["purelib"])
            for entry in ours.iterdir():
                mine = entry.name.startswith(("ultracluster", "_editable_impl_ultracluster", "__pycache__"))
                if not mine and entry.suffix != ".pth":
                    (library / entry.name).symlink_to(entry)
            pip = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--no-deps", "--no-index"]
            subprocess.run([*pip, "--quiet", "--no-compile", str(wheel)], check=True, capture_output=True)
    return folder


def run_in(
    site: Path, folder: Path, *words: str, path: str = "", check: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of that environment in a folder, with nothing of this checkout in its variables.

    Args:
        path: PATH behind the environment's own; that of the tests by default.
        more: further variables.
    """
    variables = {
        "PATH": os.pathsep.join([str(site / "bin"), path or os.environ["PATH"]]),
        "HOME": os.environ.get("HOME", "/"),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ["JSII_RUNTIME_PACKAGE_CACHE_ROOT"],
        **({} if path else node_of_tests()),
        **more,
    }
    command: Sequence[str] = [str(site / "bin" / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, check=False)
    assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def node_of_tests() -> dict[str, str]:
    """Variables with which the CDK's kernel of another process takes half the time; see conftest.py."""
    return {name: os.environ[name] for name in ("JSII_NODE", "NODE_OF_TESTS") if name in os.environ}


class _locked:  # noqa: N801 # a context manager
    """Holds the lock of a folder: another worker waits until what it needs is there."""

    def __init__(self, base: Path) -> None:
        base.mkdir(parents=True, exist_ok=True)
        self._file = base / "lock"

    def __enter__(self) -> None:
        self._opened = self._file.open("w")
        fcntl.lockf(self._opened, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._opened.close()

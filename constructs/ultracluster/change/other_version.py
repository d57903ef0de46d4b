"""What another version of Ultracluster makes of the same environment file: a wheel, a git revision, or a
Python in which that version is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import TemporaryDirectory

from ultracluster.change.comparison import Comparison
from ultracluster.change.template_files import read_templates
from ultracluster.project.place import Located, ProjectError
from ultracluster.project.revisions import unpack_all
from ultracluster.project.synth import run_app, said_by
from ultracluster.version import __version__

SOURCE = Path(__file__).resolve().parents[3]
"""The checkout, where this runs from one."""
_LAST = 20
"""Lines of what a version says that cannot synthesise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """How templates of another version are made."""

    label: str
    root: Path
    """Whose app.py is run."""
    python: Path = Path(sys.executable)
    packages: Sequence[Path] = ()
    """Where its modules lie, before those that are installed in the Python."""
    note: str


def of_version(here: Located, wanted: str) -> Comparison:
    """The templates that another version makes of an environment file, with those of this version.

    Args:
        wanted: a wheel file; a Python, or a virtual environment; else a git revision of the checkout.

    Raises:
        ProjectError: there is no such version here, or one of both cannot synthesise the environment.
    """
    with TemporaryDirectory() as made:
        scratch = Path(made)
        other = _found(here, wanted, scratch / "version")
        ours, theirs = scratch / "ours", scratch / "theirs"
        with ThreadPoolExecutor(max_workers=2) as pool:
            now = pool.submit(run_app, here.root, here.file, ours)
            then = pool.submit(
                run_app, other.root, here.file, theirs, python=other.python, packages=other.packages
            )
        own = f"ultracluster {__version__}"
        for label, run, instead in ((own, now.result(), ""), (other.label, then.result(), _INSTEAD)):
            if run.returncode:
                text = "\n".join(said_by(run).splitlines()[-_LAST:])
                raise ProjectError(f"{here.name} cannot be synthesised by {label}:\n{text}{instead}")
        before, after = read_templates(theirs), read_templates(ours)
    names = (f"{here.name} by {other.label}", f"{here.name} by {own}")
    return Comparison(*names, before, after, ["the same environment file in both versions", other.note])


_INSTEAD = (
    "\nIf that version does not know the file as it is now: synthesise the file of that time with it, then "
    "compare the folders with `ultracluster diff --templates OLD NEW`."
)


def _found(here: Located, wanted: str, scratch: Path) -> Version:
    place = Path(wanted).expanduser()
    if place.suffix == ".whl":
        return _wheel(here, place, scratch)
    python = next((one for one in (place / "bin" / "python", place) if _is_program(one)), None)
    if python:
        return _python(here, python)
    if place.exists() or place.is_absolute():
        raise ProjectError(f"--against-version {wanted}: {_WAYS}")
    return _revision(here, wanted, scratch)


_WAYS = (
    "this is neither a wheel (ultracluster-1.2.0-py3-none-any.whl), nor a Python or virtual environment in "
    "which another version is installed (old/bin/python), nor a git revision of the checkout (v1.2.0)"
)


def _wheel(here: Located, file: Path, scratch: Path) -> Version:
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if "ultracluster/__init__.py" not in names:
                raise ProjectError(f"--against-version {file}: this is not a wheel of Ultracluster")
            if not {"ultracluster/app.py", "ultracluster/stacks/environment.py"} <= names:
                raise ProjectError(
                    f"--against-version {file}: this wheel is of a version whose stacks were in the "
                    "checkout only; name the git revision that it was built from"
                )
            for member in archive.infolist():
                archive.extract(member, scratch)
                if mode := member.external_attr >> 16:  # scripts are hashed and shipped with theirs
                    (scratch / member.filename).chmod(mode & 0o777)
            metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
            found = re.search(r"^Version: (\S+)", archive.read(metadata).decode(), re.MULTILINE)
    except (OSError, zipfile.BadZipFile, StopIteration) as error:
        raise ProjectError(f"--against-version {file} cannot be read as a wheel: {error}") from None
    return Version(
        label=f"ultracluster {found[1] if found else '?'} ({file.name})",
        root=here.root,
        packages=(scratch,),
        note=_dependencies("a wheel brings none"),
    )


def _python(here: Located, python: Path) -> Version:
    run = _asked(python)
    if run is None:
        raise ProjectError(
            f"--against-version {python}: no ultracluster is installed there "
            f"(`{python} -m pip install WHEEL`)"
        )
    version, cdk, place = run
    return Version(
        label=f"ultracluster {version} ({place})",
        root=here.root,
        python=python.absolute(),  # a link: what it leads to knows nothing of the virtual environment
        note=f"with the dependencies that are installed there (aws-cdk-lib {cdk})",
    )


def _asked(python: Path) -> tuple[str, str, str] | None:
    """Versions of Ultracluster and the CDK in a Python, and where it is installed; None without."""
    code = (
        "import ultracluster; from importlib.metadata import version; "
        "print(getattr(ultracluster, '__version__', None) or version('ultracluster'), "
        "version('aws-cdk-lib'), ultracluster.__path__[0], sep='\\n')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603
        [str(python), "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return (lines[0], lines[1], lines[2]) if done.returncode == 0 and len(lines) == 3 else None


def _revision(here: Located, revision: str, scratch: Path) -> Version:
    checkout = next(
        (one for one in (here.root, SOURCE) if (one / "constructs" / "ultracluster").is_dir()), None
    )
    if checkout is None:
        raise ProjectError(
            f"--against-version {revision}: there is no checkout of Ultracluster here. Name a "
            "wheel, or a Python in which that version is installed"
        )
    commit = unpack_all(checkout, revision, scratch, option="--against-version")
    if not (scratch / "app.py").is_file():
        raise ProjectError(f"--against-version {revision}: that revision has no app.py")
    return Version(
        label=f"ultracluster at {revision} ({commit})",
        root=scratch if checkout == here.root else here.root,
        packages=(scratch / "constructs",),
        note=_dependencies("a revision brings none"),
    )


def _dependencies(why: str) -> str:
    return f"both with the dependencies installed here (aws-cdk-lib {installed('aws-cdk-lib')}): {why}"


def _is_program(place: Path) -> bool:
    return place.is_file() and os.access(place, os.X_OK)

"""A team's own repository: its files from the templates in template/, written all or none."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from ultracluster.project.cdk_command import pinned_cdk
from ultracluster.project.place import SCHEMA, ProjectError
from ultracluster.project.versions import REQUIREMENTS, running_version

TEMPLATES = Path(__file__).with_name("template")
FILES = {
    "README.md": "README.md.txt",
    "app.py": "app.py.txt",
    "cdk.json": "cdk.json.txt",
    "pytest.ini": "pytest.ini.txt",
    "tests/test_environments.py": "test_environments.py.txt",
    REQUIREMENTS: "requirements.txt.txt",
    "requirements-test.txt": "test.lock.txt",
    "ci/report": "report.sh.txt",
    ".github/workflows/environments.yml": "github.yml.txt",
    ".gitlab-ci.yml": "gitlab-ci.yml.txt",
    ".gitignore": "gitignore.txt",
}
"""Template by file of the repository."""
_PROGRAMS = frozenset({"ci/report"})
_WHEELS = "wheels"
_NO_HASH = """
# Until that line ends with the hash that `pip hash FILE` prints, pip refuses to install."""
_LOCK = "dependencies.lock.txt"
COMMIT = "ultracluster.txt"
"""File of requirements that name a commit."""
_UNFINISHED = ".unfinished-"
"""Prefix of the folder in which a new repository is written before it appears."""


@dataclass(frozen=True, slots=True)
class Source:
    """State where this package was installed from, and how requirements say so."""

    requirement: str
    """Lines of requirements.txt."""
    wheel: Path | None = None
    """The file that it was installed from, which the repository takes along."""
    commit: str = ""
    """Requirement that names a commit of a version control system, which pip cannot compare with a hash."""


def installed_from(found: Distribution | None = None) -> Source:
    """By what pip, uv and pipx record of a direct installation (PEP 610).

    Where they record nothing, the wheel is expected in the repository: an index may have the name from
    somebody else.
    """
    found = found or distribution("ultracluster")
    text = found.read_text("direct_url.json")
    document: dict[str, Any] = json.loads(text) if text else {}
    address = str(document.get("url", ""))
    if (vcs := document.get("vcs_info")) and vcs.get("commit_id"):
        commit = f"ultracluster @ {vcs['vcs']}+{address}@{vcs['commit_id']}"
        return Source(f"# ultracluster itself is in {COMMIT}", commit=commit)
    file = Path(unquote(urlparse(address).path))
    if address.startswith("file:") and file.suffix == ".whl" and file.is_file():
        return Source(f"./{_WHEELS}/{file.name}{_hash(sha256(file.read_bytes()).hexdigest())}", file)
    if address and not address.startswith("file:"):
        archive: dict[str, Any] = document.get("archive_info", {})
        digest = archive.get("hashes", {}).get("sha256") or str(archive.get("hash", "")).removeprefix(
            "sha256="
        )
        return Source(f"ultracluster @ {address}{_hash(digest) if digest else _NO_HASH}")
    return Source(f"./{_WHEELS}/ultracluster-{found.version}-py3-none-any.whl{_NO_HASH}")


def _hash(digest: str) -> str:
    return f" --hash=sha256:{digest}"


def check_free(folder: Path) -> None:
    """
    Raises:
        ProjectError: a repository cannot be made there: it is a file, or a folder with something in it.
    """
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise ProjectError(f"{folder} is a file: name a folder that does not exist, or is empty")
    if folder.is_dir() and (there := sorted(one.name for one in folder.iterdir() if _counts(one.name))):
        more = ", ..." if len(there) > 3 else ""
        raise ProjectError(
            f"{folder} is not empty ({', '.join(there[:3])}{more}): name a folder that does not exist, or is "
            "empty. Nothing was written."
        )


def _counts(name: str) -> bool:
    return name != ".git" and not name.startswith(_UNFINISHED)


def texts(name: str, region: str, environments: dict[str, str], source: Source) -> dict[str, str]:
    """Every file of the repository by its path in it.

    Args:
        environments: the text of each environment file by its name.
    """
    values = {
        "NAME": name,
        "VERSION": running_version(),
        "REQUIREMENT": source.requirement,
        "LOCK": (TEMPLATES / _LOCK).read_text(encoding="utf-8"),
        "COMMIT": f" && pip install --no-deps -r {COMMIT}" if source.commit else "",
        "CDK": pinned_cdk(),
        "REGION": region,
    }
    schema = Path(__file__).parents[1] / "config" / SCHEMA
    found = {SCHEMA: schema.read_text(encoding="utf-8")}
    found |= {f"environments/{one}.yaml": text for one, text in environments.items()}
    for file, template in FILES.items():
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        found[file] = re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)
    if source.commit:
        found[COMMIT] = f"{source.commit}\n"
    return found


def write(folder: Path, files: dict[str, str], wheel: Path | None = None) -> None:
    """Write the files of a repository into a folder that is not there, or empty.

    Raises:
        ProjectError: there is something, or it cannot be written.
    """
    check_free(folder)
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_UNFINISHED) as whole:
            _write_all(Path(whole), files, wheel)
            for entry in Path(whole).iterdir():
                entry.rename(folder / entry.name)
    except OSError as error:
        if not existed:
            with suppress(OSError):
                folder.rmdir()
        raise ProjectError(f"{error.filename or folder} cannot be written: {error.strerror}") from None


def _write_all(folder: Path, files: dict[str, str], wheel: Path | None) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        if name in _PROGRAMS:
            file.chmod(0o755)
    if wheel:
        (folder / _WHEELS).mkdir()
        shutil.copy(wheel, folder / _WHEELS)

"""Cloud assemblies of environments: each is synthesised once, and kept until one of its inputs changes.

They lie in the cache of pytest (`pytest --cache-clear` empties it), below a digest of everything that decides
what is synthesised. Nothing here imports the CDK: a run that finds every assembly starts no kernel.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from project import ROOT

from ultracluster.software.environment_lock import lock_file_of
from ultracluster.software.lock import UnknownReleaseError, release_file

if TYPE_CHECKING:
    from ultracluster.config import Environment

Template = dict[str, Any]
SOURCES = ("constructs", "stacks", "lifecycle_scripts", "package.json")
HELPERS = ("assemblies.py", "templates.py")
"""Support code that decides how an environment is synthesised."""
KEPT = 2
"""States of the sources whose assemblies are kept: this one, and the one before."""


@dataclass(frozen=True)
class Synthesised:
    """A cloud assembly on disk."""

    folder: Path

    @cached_property
    def templates(self) -> dict[str, Template]:
        """Template by stack name."""
        return {
            file.name.removesuffix(".template.json"): json.loads(file.read_text(encoding="utf-8"))
            for file in self.files
        }

    @property
    def files(self) -> list[Path]:
        """The files of the templates."""
        return sorted(self.folder.glob("*.template.json"))

    @cached_property
    def findings(self) -> set[tuple[str, str]]:
        """(rule, construct path) of everything that validation or cdk-nag says and nobody acknowledged.

        Raises:
            FileNotFoundError: the assembly was not checked.
        """
        report = json.loads((self.folder / "validation-report.json").read_text(encoding="utf-8"))
        return {
            (violation["ruleName"], construct["constructPath"])
            for plugin in report["pluginReports"]
            for violation in plugin["violations"]
            for construct in violation["violatingConstructs"]
        }

    @cached_property
    def acknowledged(self) -> dict[str, dict[str, str]]:
        """Reason by rule, by construct path; as the assembly has it: to ask each construct takes seconds."""
        return {
            path.removeprefix("/"): entry["data"]
            for file in sorted(self.folder.glob("*.metadata.json"))
            for path, entries in json.loads(file.read_text(encoding="utf-8")).items()
            for entry in entries
            if entry["type"] == "aws:cdk:acknowledged-rules"
        }

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of one type over all stacks, by `stack/logical id`."""
        return {
            f"{stack}/{logical_id}": resource
            for stack, template in self.templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == kind
        }


def assembly(environment: Environment, *, checked: bool = True) -> Synthesised:
    """The assembly of an environment; with `checked` under strict validation and cdk-nag."""
    home = _home() / environment_digest(environment)
    kinds = [home / "checked"] if checked else [home / "checked", home / "unchecked"]
    for folder in kinds:
        if folder.exists():
            return Synthesised(folder)
    from templates import synthesise  # only now: it starts the CDK's kernel

    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # another worker may synthesise it
        folder = kinds[-1]
        if not folder.exists():
            new = Path(tempfile.mkdtemp(prefix="new-", dir=home))
            synthesise(environment, new, validate=checked, nag=checked)
            if _changed_since_start():
                return Synthesised(new)  # of code that was loaded before the change
            _share_assets(new, home.parent / "assets")
            new.rename(folder)
    return Synthesised(folder)


def _share_assets(folder: Path, shared: Path) -> None:
    """Keep assets once: their names are digests of 25 MB that most environments have in common."""
    shared.mkdir(exist_ok=True)
    for asset in sorted(folder.glob("asset.*")):
        kept = shared / asset.name
        with contextlib.suppress(OSError):  # another worker has kept it meanwhile
            if not kept.exists():
                asset.rename(kept)
        if asset.is_dir():
            shutil.rmtree(asset)
        else:
            asset.unlink(missing_ok=True)
        asset.symlink_to(os.path.relpath(kept, folder))


def templates_alone(environment: Environment) -> dict[str, Template]:
    """Templates of an environment by stack name, unchecked: a quarter of the time."""
    return assembly(environment, checked=False).templates


_run: dict[str, Any] = {}
"""Where assemblies are kept (`place`), and the time before the package was imported (`start`)."""


def keep_in(run: Path, start: float) -> None:
    """Keep assemblies in pytest's cache, or in the folder of this run where the checkout is read-only."""
    place = ROOT / ".pytest_cache" / "d" / "assemblies"
    try:
        place.mkdir(parents=True, exist_ok=True)
        writable = os.access(place, os.W_OK)
    except OSError:
        writable = False
    _run.update(place=place if writable else run / "assemblies", start=start)


@cache
def _home() -> Path:
    """The folder for the sources as they are now; what older sources gave is removed."""
    place: Path = _run["place"]
    home = place / sources_digest(ROOT, _versions())
    home.mkdir(parents=True, exist_ok=True)
    home.touch()
    newest = sorted((one for one in place.iterdir() if one.is_dir()), key=lambda one: -one.stat().st_mtime)
    for old in newest[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return home


def _changed_since_start() -> bool:
    """Whether someone edits the sources while tests run."""
    return any(file.stat().st_ctime > _run["start"] for file in source_files(ROOT))


def sources_digest(root: Path, versions: tuple[str, ...]) -> str:
    """A digest of what every assembly depends on: names, modes and content of files; versions."""
    digest = hashlib.sha256(json.dumps(versions).encode())
    for file in source_files(root):
        row = (file.relative_to(root).as_posix(), file.stat().st_mode & 0o111, _hashed(file))
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()[:16]


def source_files(root: Path) -> Iterator[Path]:
    """The package, the stacks, what nodes run, and how tests synthesise."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        if here == root:
            folders[:] = [name for name in folders if name in SOURCES]
            names = [name for name in names if name in SOURCES]
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (here / name for name in sorted(names))
    yield from (root / "tests" / "support" / name for name in HELPERS)


def environment_digest(environment: Environment) -> str:
    """A digest of an environment: its values, where it lies, and the content of the files that it names."""
    text = environment.model_dump_json(warnings=False)
    digest = hashlib.sha256(text.encode())
    digest.update(str(environment.file).replace(str(ROOT), "").encode())
    folder = environment.file.parent
    named = sorted({folder / value for value in _strings(json.loads(text)) if "." in value})
    with contextlib.suppress(UnknownReleaseError):
        named.append(release_file(environment.software.release))  # it may be a team's own
    for file in (lock_file_of(environment.file), *named):
        if os.path.isfile(file):  # noqa: PTH113 # it takes any text, be it too long for a name
            digest.update(json.dumps((file.name, _hashed(file))).encode())
    return digest.hexdigest()[:16]


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _strings(one)
        case dict():
            for one in value.values():
                yield from _strings(one)
        case _:
            pass


def _hashed(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _versions() -> tuple[str, ...]:
    """Of Python, Node.js, and all that is installed: the CDK, cdk-nag, jsii; and the CDK's variables."""
    node = os.environ.get("JSII_NODE") or "node"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    installed = sorted(one.name for one in Path(sysconfig.get_paths()["purelib"]).glob("*.dist-info"))
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("CDK_"))
    return (sys.version, said.stdout.strip(), *installed, *variables)

"""`ultracluster doctor --bundle`: the list of what AWS Support would get, then the archive."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from ultracluster.account.aws import Account
from ultracluster.account.doctor import Examination, examine
from ultracluster.account.doctor.bundle import Bundle, make_bundle
from ultracluster.account.doctor.bundle_sources import Papers, ask_for_bundle
from ultracluster.account.doctor.redaction import Redaction
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import confirm, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.terminal import remark
from ultracluster.config import Environment
from ultracluster.config.file_write import write
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.on_nodes import shell_of
from ultracluster.model import resolve
from ultracluster.supply.artifacts import default_cache
from ultracluster.version import __version__

BUDGET = 180.0
"""Seconds for all sources: nodes answer through Systems Manager, one question after the other."""
_ENDS = (".tar.gz", ".tgz")
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Wish:
    """Options of the command."""

    file: Path
    config: Environment
    given: Examination | None
    """Logs that were given instead of an account."""
    hours: int
    yes: bool
    as_json: bool


def check_bundle(file: Path, reason: str) -> None:
    """Refuse before anything is asked."""
    if reason:
        refuse("--bundle and --reason: a reason is explained without a bundle; leave one of them out")
    if not file.name.endswith(_ENDS):
        refuse(f"--bundle {file}: the archive is a .tar.gz; name a file that ends in {' or '.join(_ENDS)}")
    if os.path.lexists(file):
        refuse(f"--bundle {file}: it exists; name another file, or delete it")
    if not file.parent.is_dir():
        refuse(f"--bundle {file}: {file.parent} is no folder")


def write_bundle(wish: Wish, profile: str | None) -> None:
    """Ask, show the list, and write what is confirmed; exit code 3 where a source did not answer."""

    papers: Papers = {}
    found = wish.given or _examine(wish, open_account(wish.config, profile), papers)
    bundle = make_bundle(
        found,
        papers,
        Redaction(_key(), _people(wish.config)),
        environment=wish.config.name,
        versions=versions(wish.config),
    )
    data = bundle.archive()
    typer.echo(as_text(bundle, len(data)), err=wish.as_json)
    confirm(f"Write these {len(bundle.files)} files to {wish.file}?", wish.yes)
    try:
        write(wish.file, data, new=True)
        wish.file.chmod(0o600)  # what is left in it is still nobody else's
    except OSError as error:
        refuse(f"--bundle {wish.file}: it cannot be written: {error.strerror}")
    if wish.as_json:
        write_json("bundle", _document(bundle, wish.file, data))
    else:
        remark(f"written to {one_line(str(wish.file))}; read it before you attach it to a case")
    raise typer.Exit(3 if bundle.silent else 0)


def _examine(wish: Wish, account: Account, papers: Papers) -> Examination:

    cluster = resolve(wish.config)
    with working("asking") as say:
        return examine(
            account,
            cluster,
            hours=wish.hours,
            progress=lambda step: say(f"asking {step}"),
            budget=BUDGET,
            also=lambda inquiry, since: papers.update(
                ask_for_bundle(account, cluster, inquiry, since, _on_nodes)
            ),
        )


def _on_nodes(fleet: Fleet, nodes: list[Node], script: str) -> Mapping[str, tuple[str, str]]:
    """Output of a script by node, and why there is none."""

    answers = shell_of(fleet).run(nodes, script)
    return {node: (one.text, one.why) for node, one in answers.items()}


def as_text(bundle: Bundle, size: int) -> str:
    """List of the files, for a person who decides on them."""
    lines = [f"{'bytes':>10}  file"]
    lines += [f"{one.bytes:>10}  {one.name}" for one in bundle.entries]
    lines.append(f"{size:>10}  in all, packed")
    removed = ", ".join(f"{number} {kind}" for kind, number in sorted(bundle.removed.items()))
    lines += ["", f"secrets removed: {removed or 'none found'}"]
    if bundle.pseudonyms:
        lines.append("people, who are only named here:")
        lines += [f"  {pseudonym} is {name}" for pseudonym, name in bundle.pseudonyms.items()]
    if bundle.silent:
        lines.append("not answered, and named inside:")
        lines += [f"  {one.name}: {one.why}" for one in bundle.silent]
    return "\n".join(map(one_line, lines))


def _document(bundle: Bundle, file: Path, data: bytes) -> dict[str, Any]:
    return {
        "file": str(file),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "entries": bundle.entries,
        "sources": bundle.sources,
        "removed": dict(bundle.removed),
        "pseudonyms": dict(bundle.pseudonyms),
    }


def versions(config: Environment) -> dict[str, Any]:
    """Versions that the environment file asks for, and ours."""
    return {
        "ultracluster": __version__,
        "python": platform.python_version(),
        "boto3": metadata.version("boto3"),
        "region": config.region,
        "account": config.account,
        "orchestrator": config.orchestrator.kind,
        "software_release": config.software.release,
        "node_groups": {
            name: {"instance_type": group.instance_type, "count": group.count, "role": group.role}
            for name, group in config.node_groups.items()
        },
    }


def _people(config: Environment) -> list[str]:
    members = [name for team in config.teams.values() for name in team.users]
    return [*config.users, *members]


def _key() -> bytes:
    """This machine's key of pseudonyms, so that each bundle calls a person the same."""

    file = default_cache() / "pseudonyms.key"
    with suppress(OSError):
        if len(key := file.read_bytes()) == _KEY_BYTES:
            return key
    key = secrets.token_bytes(_KEY_BYTES)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(key)
    except OSError as error:
        remark(f"{file} cannot be written ({error.strerror}): pseudonyms are those of this bundle only")
    return key

"""What the nodes of one group are given: the scripts that they run and their `cluster.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultracluster.lifecycle.one_file import one_file
from ultracluster.lifecycle.scripts import content_hash
from ultracluster.lifecycle.selection import files_of, tool_files
from ultracluster.scripts_folder import CONFIGURATION, name_in_folder, scripts_folder

NODE_FILE = "node.sh"
"""All scripts of a group in one file, below its prefix."""
TOOLS = "tools"
"""Where the proofs for people lie beside the folders of the groups; always the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Files for one folder in S3.

    Attributes:
        folder: its name below that of the cluster: the hash of the content, or `tools`.
        files: content by path.
        configuration: written as `cluster.json` beside them, completed by what is known only after deploy;
            None where the files hold all.
        sha256: 64 hex digits of the one file, as PCS's `Checksum` takes them; empty for a folder.
    """

    folder: str
    files: Mapping[str, bytes]
    configuration: Mapping[str, Any] | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """The scripts of one way to boot nodes: read once, however many groups boot so."""

    root: Path
    paths: Sequence[Path]

    @classmethod
    def of(cls, *entries: str, release: object = None, also: Sequence[str] = ()) -> NodeFiles:
        """What nodes with these entries (without `.sh`) read.

        Args:
            release: as their `cluster.json` names it; every release where it names none.
            also: further files, by their path among the scripts.

        Raises:
            ValueError: an entry, the release or a file does not exist.
        """
        root = scripts_folder()
        named = release if isinstance(release, str) else None
        return cls(root=root, paths=files_of(root, entries, release=named, also=also))

    def bundles(
        self, by_group: Mapping[str, Mapping[str, Any]], groups: Iterable[str], *, one_file: bool = False
    ) -> dict[str, Bundle]:
        """What each of the groups is given, by group.

        Args:
            by_group: `cluster.json` by group.
            groups: those that run scripts.
            one_file: nodes are handed one file instead of a folder.

        Raises:
            ValueError: a group has no configuration.
        """
        wanted = list(groups)
        if missing := [name for name in wanted if name not in by_group]:
            raise ValueError(f"there is no script configuration of the group {', '.join(missing)}")
        make = self.in_one_file if one_file else self.in_folder
        return {name: make(by_group[name]) for name in wanted}

    def in_folder(self, configuration: Mapping[str, Any]) -> Bundle:
        """Every file by its own, with `cluster.json` beside them."""
        return Bundle(
            folder=content_hash(self.root, self.paths, configuration),
            files=_contents(self.root, self.paths),
            configuration=configuration,
        )

    def in_one_file(self, configuration: Mapping[str, Any]) -> Bundle:
        """One file that unpacks itself, for nodes that are handed a file and its checksum."""
        made = one_file(self.root, dict(configuration), self.paths)
        return Bundle(
            folder=content_hash(self.root, self.paths, configuration),
            files={NODE_FILE: made.content},
            sha256=made.sha256,
        )


def tools(configuration: Mapping[str, Any]) -> list[Bundle]:
    """What people run on nodes, with a `cluster.json` that tells of all groups; nothing without one."""
    root = scripts_folder()
    if not configuration:
        return []
    return [Bundle(folder=TOOLS, files=_contents(root, tool_files(root)), configuration=configuration)]


def configuration_text(configuration: Mapping[str, Any]) -> bytes:
    """`cluster.json` as it is uploaded."""
    return json.dumps(configuration, sort_keys=True, indent=1).encode()


def _contents(root: Path, paths: Sequence[Path]) -> dict[str, bytes]:
    return {name_in_folder(root, path): path.read_bytes() for path in paths}


__all__ = ["CONFIGURATION", "NODE_FILE", "TOOLS", "Bundle", "NodeFiles", "configuration_text", "tools"]

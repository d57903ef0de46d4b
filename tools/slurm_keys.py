#!/usr/bin/env python
"""Rewrites catalog/slurm_keys.json from a clone of Slurm's repository.

    python tools/slurm_keys.py /path/to/clone/of/SchedMD/slurm

The file says which parameters the parser of each release knows, and how it reads their values. A release is
read at its newest tag here; a newer tag is a line of `RELEASES`.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "constructs" / "ultracluster" / "catalog" / "slurm_keys.json"
RELEASES = {
    "23.11": "slurm-23-11-9-1",
    "24.11": "slurm-24-11-7-1",
    "25.05": "slurm-25-05-8-1",
    "25.11": "slurm-25-11-7-1",
    "26.05": "slurm-26-05-3-1",
}
READERS: dict[str, tuple[str, str]] = {
    "slurm.conf": ("src/common/read_config.c", "slurm_conf_options"),
    "NodeName": ("src/common/read_config.c", "_nodename_options"),
    "PartitionName": ("src/common/read_config.c", "_partition_options"),
    "NodeSet": ("src/common/read_config.c", "_nodeset_options"),
    "cgroup.conf": ("src/interfaces/cgroup.c", "options"),
    "gres.conf": ("src/interfaces/gres.c", "_gres_options"),
    "slurmdbd.conf": ("src/slurmdbd/read_config.c", "options"),
}
"""The table of options of each file or line of one."""
_ROW = re.compile(r'\{\s*(?:\.key\s*=\s*)?"(\w+)"\s*,\s*(?:\.type\s*=\s*)?S_P_(\w+)\s*(?:,\s*(\w+))?')


def document(clone: str) -> dict[str, Any]:
    """The document of slurm_keys.json."""
    read = {
        release: {name: _options(clone, tag, *place) for name, place in READERS.items()}
        for release, tag in RELEASES.items()
    }
    return {
        "about": {
            "what": "Parameters that the parser of each Slurm release knows, and how it reads their values. "
            "Written by tools/slurm_keys.py.",
            "date": "2026-11-28",
            "source": "SchedMD/slurm at the tags named",
            "type": "of the parser: string, uint16, uint32, uint64, long, boolean; array for several lines",
            "from": "first release here that knows it; all do where it is missing",
            "to": "last release here that knows it",
            "defunct": "first release here that reports it as defunct and ignores it",
        },
        "releases": RELEASES,
        "files": {
            name: {"source": f"{path}, {table}", "keys": _over_releases([read[one][name] for one in read])}
            for name, (path, table) in READERS.items()
        },
    }


def _options(clone: str, tag: str, path: str, table: str) -> dict[str, tuple[str, bool]]:
    """Type of each parameter, and whether it is defunct."""
    text = subprocess.run(  # noqa: S603
        ["git", "-C", clone, "show", f"{tag}:{path}"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.search(rf"s_p_options_t {table}\[\] = \{{(.*?)\n\s*(?:\{{\s*NULL\s*\}}|\}};)", text, re.DOTALL)
    if not found:
        raise ValueError(f"{path} of {tag} has no table {table}")
    return {
        key: (kind.lower(), handler == "_defunct_option") for key, kind, handler in _ROW.findall(found[1])
    }


def _over_releases(read: list[dict[str, tuple[str, bool]]]) -> dict[str, Any]:
    releases = list(RELEASES)
    rows: dict[str, Any] = {}
    for name in sorted({key for one in read for key in one}, key=str.lower):
        known = [release for release, one in zip(releases, read, strict=True) if name in one]
        row: dict[str, str] = {"type": next(one[name][0] for one in reversed(read) if name in one)}
        if known[0] != releases[0]:
            row["from"] = known[0]
        if known[-1] != releases[-1]:
            row["to"] = known[-1]
        defunct = [release for release, one in zip(releases, read, strict=True) if one.get(name, ("", 0))[1]]
        if defunct:
            row["defunct"] = defunct[0]
        rows[name] = row
    return rows


def written(content: dict[str, Any]) -> str:
    """A row for each parameter."""
    text = json.dumps(content, indent=2)
    return (
        re.sub(r"\{\s*(\"type\"[^{}]*?)\s*\}", lambda row: "{" + " ".join(row[1].split()) + "}", text) + "\n"
    )


if __name__ == "__main__":
    TABLE.write_text(written(document(sys.argv[1])), encoding="utf-8")

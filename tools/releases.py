"""Writes lifecycle_scripts/releases/*.lock from releases.json beside this file, and their counts into pages.

Run by `make generate`. Nodes read one complete file per release; what releases share stands once, in
releases.json: components with their repositories, and digests by file name. What a mirror recorded in a lock
file (`package_sets`) stays there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ultracluster.catalog.instances import instance_types
from ultracluster.software.lock import release_file, releases_folder
from ultracluster.software.lock_text import written
from ultracluster.software.records import checked
from ultracluster.software.solver import instance_rows
from ultracluster.software.versions import Version

FILE = Path(__file__).with_suffix(".json")
PAGES = (Path("README.md"), Path("docs/releases.md"))
"""Pages with a sentence between `<!-- records -->` and `<!-- /records -->`."""
_COUNTS = re.compile(r"(?<=<!-- records -->).*?(?=<!-- /records -->)", re.DOTALL)
_FLOOR = ("version", "mark", "source")
_MACHINES = ("x86_64", "aarch64")
_FIELDS = (
    *("version", "kind", "provides", "install_path", "need", "floor", "needs", "accelerator", "constraint"),
    *("source", "note"),
)


def locks() -> dict[str, dict[str, Any]]:
    """Content of each lock file, by release.

    Raises:
        ValueError: a file or component that releases.json does not describe.
    """
    table: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: _release(name, entry, table) for name, entry in table["releases"].items()}


def _release(name: str, entry: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    unknown = set(entry["components"]) - set(table["components"])
    if unknown:
        raise ValueError(f"{name}: nothing describes {', '.join(sorted(unknown))}")
    efa = entry["components"]["efa-installer"]["version"]
    brings = table["efa"][efa]
    components: dict[str, Any] = {}
    for component, shared in table["components"].items():
        if component not in entry["components"]:
            continue
        facts = {**shared, **entry["components"][component]}
        if component == "efa-installer":
            facts["provides"] = brings
        if component in ("libfabric", "aws-ofi-nccl"):
            facts["version"] = brings.get(component, "bundled")
        if component == "kernel":
            facts["provides"] = {system: facts["provides"][system] for system in entry["systems"]}
        components[component] = _component(component, facts, entry["systems"], table)
    head = {key: entry[key] for key in ("families", "images", "date", "summary")}
    return {"schema": 2, "release": name, **head, "components": components}


def _of_families(component: str, lowest: str) -> dict[str, Any]:
    """Floors of the instance families that require more, by branch, as nodes judge a driver."""
    floors: dict[str, Any] = {}
    for kind in instance_types().values():
        rows = instance_rows(kind.accelerator.name, kind.name) if kind.accelerator else ()
        for row in (one for one in rows if not one.recommended):
            for one in row.require:
                family, branch = kind.name.partition(".")[0], str(one.value).partition(".")[0]
                known = floors[family]["version"] if family in floors else lowest
                asked = (row.severity, one.fact, one.op) == ("error", component, ">=")
                if asked and Version(branch) > Version(known):
                    floors[family] = dict(zip(_FLOOR, (branch, "confirmed", row.source), strict=True))
    return dict(sorted(floors.items()))


def _component(name: str, facts: dict[str, Any], systems: list[str], table: dict[str, Any]) -> dict[str, Any]:
    words = {"version": facts["version"], "cuda": facts.get("provides", {}).get("cuda", "")}
    result: dict[str, Any] = {}
    for key in _FIELDS:
        value: Any = facts.get(key, {"needs": [], "accelerator": "any"}.get(key))
        if key == "floor" and value:
            result[key] = dict(zip(_FLOOR, value, strict=True))
            if name == "nvidia-driver":
                result["floors"] = _of_families(name, value[0])
        elif key == "install_path" and value:
            result[key] = value.format(**words)
        elif value is not None:
            result[key] = value
    for key, make in (("artifacts", _artifact), ("packages", _packages)):
        entries = [
            row
            for template in facts.get(key, ())
            for row in _rows(
                template, systems, lambda place, one=template, of=make: of(one, place, table), words, table
            )
        ]
        if entries:
            result[key] = entries
    return result


def _rows(
    template: dict[str, Any],
    systems: list[str],
    make: Callable[[dict[str, str]], dict[str, Any]],
    words: dict[str, str],
    table: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """One entry for all places where it is the same, else one for each."""
    pairs = [
        (system, machine)
        for system, machine in product(template.get("os", systems), template.get("arch", _MACHINES))
        if system in systems
    ]
    made: list[tuple[dict[str, Any], list[tuple[str, str]]]] = []
    for system, machine in pairs:
        place = {**words, **table["systems"][system], **table["machines"][machine], "machine": machine}
        row = make(place)
        same = next((places for known, places in made if known == row), None)
        if same is None:
            made.append((row, [(system, machine)]))
        else:
            same.append((system, machine))
    for row, places in made:
        os = list(dict.fromkeys(system for system, _ in places))
        arch = list(dict.fromkeys(machine for _, machine in places))
        whole = len(os) * len(arch) == len(places)
        for one, other in [(os, arch)] if whole else [([system], [machine]) for system, machine in places]:
            yield {**({} if template.get("any_system") else {"os": one}), "arch": other, **row}


def _artifact(template: dict[str, Any], place: dict[str, str], table: dict[str, Any]) -> dict[str, Any]:
    url = template.get("url", "").format(**place)
    name = template.get("name", "").format(**place) or url.rpartition("/")[2]
    if name not in table["digests"]:
        raise ValueError(f"{name}: `digests` says neither its digest nor that nobody records one")
    known: dict[str, str] = table["digests"][name]
    digest = {key: known[key] for key in ("sha256", "sha512") if key in known}
    signed = {key: text.format(**place) for key, text in template.get("signed_by", {}).items()}
    return {
        **({"url": url} if url else {}),
        "name": name,
        "size": known.get("size"),
        **digest,
        "integrity": "signature" if signed else "checksum" if digest else "to-be-locked",
        **signed,
        "note": known["note"],
    }


def _packages(template: dict[str, Any], place: dict[str, str], table: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"names": [name.format(**place) for name in template["names"]]}
    if "repository" in template:
        where = table["repositories"][template["repository"]]
        row["repository"] = {key: text.format(**place) for key, text in where.items()}
    return {**row, "note": template["note"]} if "note" in template else row


def counted(page: str) -> str:
    """A page with what no source records exactly, by release."""
    found = {name: checked(release_file(name)) for name in sorted(json.loads(FILE.read_text())["releases"])}
    words = [f"{one.total - one.checked} of {one.total} in `{name}`" for name, one in found.items()]
    return _COUNTS.sub(f"{', '.join(words[:-1])} and {words[-1]}", page)


def main() -> None:
    for name, content in locks().items():
        file = releases_folder() / f"{name}.lock"
        sets = json.loads(file.read_text(encoding="utf-8")).get("package_sets") if file.exists() else None
        file.write_text(written({**content, **({"package_sets": sets} if sets else {})}), encoding="utf-8")
    for page in PAGES:
        file = FILE.parents[1] / page
        file.write_text(counted(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

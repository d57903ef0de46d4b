"""What of the catalogue is new, gone, too old or about to end.

    python tools/facts.py                      # against botocore, cfn-lint and moto as they are installed
    python tools/facts.py --today 2027-01-01   # as if it were that day
    make facts FRESH=1                         # against their newest releases, in a throw-away environment

Exit code 1 if there is anything to do, so that a scheduled job can open work; `docs/facts.md` says how.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from tools import catalog_from_authorities as authorities
from tools import guide_paragraphs, managed_policies
from tools import update_requires_from_docs as reference
from ultracluster.catalog import instance_types
from ultracluster.catalog.eks_calendar import kubernetes_releases, kubernetes_support
from ultracluster.catalog.pcs import pcs_slurm_versions
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.pcs import Pcs
from ultracluster.scripts_folder import scripts_folder

PACKAGE = authorities.CATALOG.parent
CLASSES = Path(__file__).with_name("facts.json")
FAULTS = scripts_folder() / "health" / "faults.json"
GENERATED = {
    "general_instances.json": authorities.general_instances,
    "regions.json": authorities.regions,
    "rds_classes.json": authorities.rds_classes,
}
CHANGE = PACKAGE / "change"
REFERENCE = Path("docs/AWSCloudFormation/latest/TemplateReference")
"""Folder of the pages of resource types in a checkout of the documentation."""
Kind = Literal["new", "gone", "changed", "too old", "ending", "disagree"]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing to do."""

    kind: Kind
    where: str
    """The catalogue's file."""
    what: str
    due: bool = True
    """Something is to be done; False for what is only told."""

    def __str__(self) -> str:
        return f"{self.kind:8} {self.where:24} {self.what}"


def everything(today: dt.date) -> list[Line]:
    """All that is to do, or to know, on a day."""
    return [*_generated(), *_types(), *_policies(), *_ages(today), *_ends(today), *_contradictions()]


def of_docs(docs: Path) -> Iterator[Line]:
    """Differences between AWS's documentation of today and what facts of changes were made of.

    Args:
        docs: a checkout of the text (docs/facts.md).
    """
    rows = guide_paragraphs.recorded()
    for kind, what in guide_paragraphs.differences(docs, rows):
        yield Line(cast("Kind", kind), guide_paragraphs.FILE.name, what)
    reference_is_there = (docs / REFERENCE).is_dir()
    here, all_pages = guide_paragraphs.compared(docs, rows)
    if here < all_pages:
        what = f"{docs} has the guides of {here} of {all_pages} pages; the others are not compared"
        yield Line("gone", guide_paragraphs.FILE.name, what, due=not (here or reference_is_there))
    if reference_is_there:
        types = json.loads(reference.TABLE.read_text(encoding="utf-8"))["types"]
        for kind, what in reference.differences(docs / REFERENCE, types):
            todo = "python tools/update_requires_from_docs.py" if kind != "gone" else "look, then the same"
            yield Line(cast("Kind", kind), reference.TABLE.name, f"{what}: {todo}")


def compared(file: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Line]:
    """What differs between a generated file and a fresh one, section by section and row by row."""
    for section in new:
        if section == "about":
            continue
        before, after = old.get(section, {}), new[section]
        for name in sorted(after.keys() - before.keys()):
            yield Line("new", file, f"{section}: {name}")
        for name in sorted(before.keys() - after.keys()):
            yield Line("gone", file, f"{section}: {name}")
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                yield Line("changed", file, f"{section}: {name}: {_difference(before[name], after[name])}")


def ages(today: dt.date, dates: Mapping[str, str], classes: Mapping[str, Any]) -> Iterator[Line]:
    """Files older than their class allows, and files without a class.

    Args:
        dates: `yyyy-mm-dd` or `yyyy-mm` by file.
        classes: `facts.json`.
    """
    days_of = {file: row["days"] for row in classes["classes"].values() for file in row["files"]}
    for file, date in sorted(dates.items()):
        if file not in days_of:
            yield Line("new", file, "no class in tools/facts.json says how old it may be")
            continue
        old = (today - dt.date.fromisoformat(date if len(date) == 10 else f"{date}-01")).days
        if old > days_of[file]:
            yield Line("too old", file, f"of {date}, {old} days; its class allows {days_of[file]}")
    for file in sorted(days_of.keys() - dates.keys()):
        yield Line("gone", file, "tools/facts.json has a class for it")


def _generated() -> Iterator[Line]:
    for file, fresh in GENERATED.items():
        old = json.loads((authorities.CATALOG / file).read_text(encoding="utf-8"))
        yield from compared(file, old, fresh())


def _types() -> Iterator[Line]:
    """Types of EC2 and HyperPod that the catalogue kept by hand does not have, or has no longer to have."""
    known = instance_types()
    ec2 = authorities.enum("ec2", "InstanceType")
    left_out = json.loads(CLASSES.read_text(encoding="utf-8"))["left_out"]
    for name in sorted({one for one in ec2 if re.match(r"p[5-9]|trn", one)} - known.keys() - left_out.keys()):
        yield Line("new", "instances.json", f"{name}: EC2 has it, for training by its name")
    for name in sorted(known.keys() - ec2):
        if not known[name].announced:
            yield Line("gone", "instances.json", f"{name}: EC2's API no longer names it")
    for name in sorted(name for name in known.keys() & ec2 if known[name].announced):
        yield Line("changed", "instances.json", f"{name}: EC2's API has it, so `announced` is out of date")
    plans = authorities.enum("sagemaker", "ReservedCapacityInstanceType")
    ours = {one.hyperpod_name for one in known.values() if one.training_plan}
    for name in sorted(plans - ours):
        yield Line("new", "instances.json", f"{name}: training plans are sold for it")
    for name in sorted(ours - plans):
        yield Line("gone", "instances.json", f"{name}: no training plans any more")


def _policies() -> Iterator[Line]:
    found = managed_policies.differences(managed_policies.recorded(), managed_policies.newest())
    for kind, what in found:
        yield Line(cast("Kind", kind), managed_policies.FILE.name, what)


def _contradictions() -> Iterator[Line]:
    """List where a page and the schema of a type disagree; no work, because the worse of the two counts."""
    types, create_only = (
        json.loads((CHANGE / name).read_text(encoding="utf-8"))["types"]
        for name in (reference.TABLE.name, "create_only.json")
    )
    for what in reference.contradictions(types, create_only):
        text = f"{what}: in place by its page, create-only by its schema. It counts unless a fact overrides"
        yield Line("disagree", reference.TABLE.name, text, due=False)


def _ages(today: dt.date) -> Iterator[Line]:
    files = [*(PACKAGE / "catalog").glob("*.json"), PACKAGE / "model" / "capacity.json", FAULTS]
    dates = {
        file.name: str(json.loads(file.read_text(encoding="utf-8")).get("about", {}).get("date", ""))
        for file in files
    }
    yield from ages(today, dates, json.loads(CLASSES.read_text(encoding="utf-8")))


def _ends(today: dt.date) -> Iterator[Line]:
    """Releases whose support ends; to be done is what a default or a shipped environment uses."""
    soon = json.loads(CLASSES.read_text(encoding="utf-8"))["ending_days"]
    used = _used()
    ends: list[tuple[str, str, str, dt.date]] = []
    for release in kubernetes_releases():
        if support := kubernetes_support(release):
            what = f"support of Kubernetes {release}"
            ends.append(("eks_calendar.json", release, f"standard {what}", support.standard_ends))
            ends.append(("eks_calendar.json", release, f"extended {what}", support.extended_ends))
    ends += [
        ("pcs.json", one, f"Slurm {one} on PCS", end) for one, end in pcs_slurm_versions().items() if end
    ]
    for file, release, what, end in ends:
        by = used.get(release, [])
        if (end - today).days <= soon and (end >= today or by):
            whose = f"; used by {', '.join(by)}" if by else "; nothing here uses it"
            yield Line("ending", file, f"{what} ends on {end}{whose}", due=bool(by))


def _used() -> dict[str, list[str]]:
    """Releases of Kubernetes and of Slurm on PCS, with the defaults and environments that have them."""
    found: dict[str, list[str]] = {}
    for model, key in (
        (Eks, "kubernetes_version"),
        (HyperPodEks, "kubernetes_version"),
        (Pcs, "slurm_version"),
    ):
        found.setdefault(model.model_fields[key].default, []).append(f"the default of {model.__name__}")
    for file in sorted((PACKAGE.parents[1] / "environments").glob("*.yaml")):
        said = re.findall(
            r"^ +(?:kubernetes_version|slurm_version): [\"']?([\d.]+)", file.read_text(encoding="utf-8"), re.M
        )
        for release in said:
            found.setdefault(release, []).append(f"environments/{file.name}")
    return found


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return "; ".join(f"{key} {_short(before.get(key))} -> {_short(after.get(key))}" for key in keys)
    return f"{_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--today", type=dt.date.fromisoformat, default=dt.date.today(), help="yyyy-mm-dd")
    parser.add_argument("--docs", type=Path, help="a checkout of the text of AWS's documentation")
    asked = parser.parse_args(arguments)
    if asked.docs is not None and not asked.docs.is_dir():
        parser.error(f"--docs {asked.docs}: no such folder")
    at_hand = ", ".join(f"{name} {version(name)}" for name in ("botocore", "cfn-lint", "moto"))
    found = [*everything(asked.today), *(of_docs(asked.docs) if asked.docs else ())]
    due = sum(line.due for line in found)
    said = [*map(str, found), f"{due or 'nothing'} to do; compared with {at_hand}"]
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 1 if due else 0


if __name__ == "__main__":
    sys.exit(main())

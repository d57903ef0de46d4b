"""What `ultracluster init` drafts for every accelerated type on every orchestrator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ultracluster.catalog import instance_types
from ultracluster.config import Environment, load
from ultracluster.plan.draft import ORCHESTRATORS, Wishes
from ultracluster.plan.draft_check import judged, nearest
from ultracluster.plan.draft_place import NoZoneError, regions_for


def drafts() -> Iterator[Environment]:
    """Each draft that `init` would write, with two nodes, in the first Region that has the type."""
    for name, kind in sorted(instance_types().items()):
        if not kind.accelerator:
            continue
        for orchestrator in ORCHESTRATORS:
            wishes = Wishes(
                name=f"{name.replace('.', '-')}-{orchestrator}"[:30].strip("-"),
                region=next(iter(regions_for(name, orchestrator)), "us-east-2"),
                orchestrator=orchestrator,
                instance_type=name,
                nodes=2,
                admin="arn:aws:iam::111122223333:role/platform-engineers",
            )
            text = _text(wishes)
            if not text:
                print(f"{wishes.name}: init refuses it")
                continue
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / f"{wishes.name}.yaml"
                file.write_text(text)
                yield load(file).environment


def _text(wishes: Wishes) -> str:
    """What `init` writes, or its nearest with this type and orchestrator where it refuses; else empty."""
    try:
        found = judged(wishes)
    except NoZoneError:
        found = None
    if found and not found.wrong and not found.unsold:
        return found.text
    same = (
        one
        for one in nearest(wishes)
        if (one.instance_type, one.orchestrator) == (wishes.instance_type, wishes.orchestrator)
    )
    other = next(same, None)
    return judged(other).text if other else ""

"""What `ultracluster init` drafts for every accelerated type on every orchestrator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ultracluster.catalog import instance_types
from ultracluster.config import Environment, InvalidEnvironmentError, load
from ultracluster.operations.draft import ORCHESTRATORS, Wishes, capacity_for, draft, regions_for, zones_for
from ultracluster.software import newest_release


def drafts() -> Iterator[Environment]:
    """Each draft that its orchestrator takes, with two nodes."""
    for name, kind in sorted(instance_types().items()):
        if not kind.accelerator:
            continue
        region = regions_for(name)[0]
        for orchestrator in ORCHESTRATORS:
            wishes = Wishes(
                name=f"{name.replace('.', '-')}-{orchestrator}"[:30].strip("-"),
                region=region,
                zone_id=zones_for(region, name)[0],
                orchestrator=orchestrator,
                instance_type=name,
                nodes=2,
                capacity=capacity_for(orchestrator, name),
                release=newest_release("eks-al2023" if orchestrator == "eks" else orchestrator).release,
                admin="arn:aws:iam::111122223333:role/platform-engineers",
            )
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / f"{wishes.name}.yaml"
                file.write_text(draft(wishes))
                try:
                    yield load(file).environment
                except InvalidEnvironmentError as error:
                    print(f"{wishes.name}: the draft is refused: {str(error).splitlines()[0]}")

"""`make twin NODES=64`: a cluster coming up, a gang over all of it, two GPUs that are lost, and what follows.

Above 128 nodes, which share one namespace and have no prolog, it measures the scheduler alone. With `--json`
the figures of the former are all that is printed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from slurm_twin import measure, story
from slurm_twin.root import NoTwinError

MOST_WITH_OWN_NAMESPACES = 128


def main(arguments: list[str]) -> int:
    """Status 2 where this machine cannot run a twin, or the number is none."""
    try:
        nodes = int(arguments[0])
        if nodes < 2:
            raise ValueError
    except (IndexError, ValueError):
        print("make twin NODES=64: the number of nodes, 2 or more", file=sys.stderr)
        return 2
    try:
        if "--json" in arguments:
            print(json.dumps(asdict(story.tell(nodes, lambda _: None))))
        elif nodes <= MOST_WITH_OWN_NAMESPACES:
            story.tell(nodes)
        else:
            measure.measure(nodes)
    except NoTwinError as error:
        print(f"no twin here: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python3 -ISB
"""Writes what node_exporter does not know of a node into files that it reads.

    main.py [--loop SECONDS] [--only NAME,NAME] [--root FOLDER] [--to FOLDER] [--state FOLDER]
            [--settings FILE]

One round, or with `--loop` one every so many seconds. `--root`: where the node's files lie, in a container.
Python 3.9 and newer.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import efa  # noqa: E402
import health  # noqa: E402
import lustre  # noqa: E402
import node  # noqa: E402
import slurm  # noqa: E402
import training  # noqa: E402
from host import Host  # noqa: E402
from rounds import round_of  # noqa: E402

COLLECTORS = {module.NAME: module for module in (efa, health, lustre, node, slurm, training)}


def settings_of(path):
    """Facts of this node; none where the file is missing or damaged."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loop", type=float, metavar="SECONDS")
    parser.add_argument("--only", metavar="NAME,NAME")
    parser.add_argument("--root", default="/")
    parser.add_argument("--to", type=Path, default=Path("/var/lib/ultracluster/metrics"))
    parser.add_argument("--state", default="/run/ultracluster/metrics")
    parser.add_argument("--settings", default=str(HERE / "settings.json"))
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else [*COLLECTORS]
    unknown = [name for name in names if name not in COLLECTORS]
    if unknown:
        parser.error(f"no collector is called {unknown[0]}: {', '.join(COLLECTORS)}")
    if options.loop is not None and options.loop < 1:
        parser.error("--loop takes seconds, 1 or more")
    options.collectors = [COLLECTORS[name] for name in names]
    return options


def main(arguments):
    options = options_of(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    due = time.monotonic()
    while True:
        host = Host(options.root, options.state, settings_of(options.settings))
        try:
            round_of(host, options.collectors, options.to)
        except OSError as error:
            print(f"nothing can be written to {options.to}: {error}", flush=True)
            if options.loop is None:
                return 1
        if options.loop is None:
            return 0
        # a round that took long leaves out those that it was late for
        due += options.loop * max(1, -(-(time.monotonic() - due) // options.loop))
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(0)

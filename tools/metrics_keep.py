"""Writes `lifecycle_scripts/metrics/keep.json`: what a node's agent keeps, by scrape job, from the catalogue.

Run without arguments; `tests/metrics/test_keep.py` fails where the file is stale.
"""

from __future__ import annotations

import json
from pathlib import Path

from ultracluster.catalog.metrics import jobs, series_names

FILE = Path(__file__).parents[1] / "lifecycle_scripts" / "metrics" / "keep.json"


def text() -> str:
    """The file: names of series, sorted, by scrape job."""
    # model servers are pods, which no agent of a node asks
    return json.dumps({job: series_names(job) for job in jobs() if job != "serving"}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

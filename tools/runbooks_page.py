"""Writes the list of alerts in docs/runbooks/README.md, keeping the text above it. Run by `make generate`."""

from __future__ import annotations

import sys
from pathlib import Path

from ultracluster.metrics.alert import alerts

FILE = Path(__file__).parents[1] / "docs" / "runbooks" / "README.md"
TABLE = "| Alert | Severity | Group | Needs |\n|---|---|---|---|\n"


def page() -> str:
    """The page as Markdown."""
    head = FILE.read_text(encoding="utf-8").partition(TABLE)[0]
    rows = (
        f"| [{alert.name}]({alert.name}.md) | {alert.severity} | {alert.group} | "
        f"{', '.join(sorted(alert.needs)) or '-'} |\n"
        for alert in alerts()
    )
    return "".join([head, TABLE, *rows])


if __name__ == "__main__":
    sys.stdout.write(page())

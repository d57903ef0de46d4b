"""The table of faults (faults.json), for what runs on nodes: Python 3.9 and newer, nothing but the standard
library, and no error for a table that is damaged: then nothing is known, and unknown drains no node."""

import json
import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent / "faults.json"
SEVERITIES = ("none", "warn", "critical")
ACTIONS = ("none", "requeue", "reset", "reboot", "replace")
"""From the mildest on."""


def load(path=TABLE):
    """The rows; none where the file cannot be read."""
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
        rows = table["faults"]
        return {
            "generations": table["generations"],
            "faults": [row for row in rows if row["severity"] in SEVERITIES and row["action"] in ACTIONS],
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {"generations": {}, "faults": []}


def generation_of(table, accelerator):
    """Of an accelerator by EC2's name of it, "H100"; empty where the table does not know it."""
    for name, facts in table["generations"].items():
        if accelerator and accelerator in facts["accelerators"]:
            return name
    return ""


def applies(row, generation):
    """A row for some generations is for a node of an unknown one only where it is mild: what the table says
    of another generation ends no node."""
    named = row.get("generations", "all")
    if named == "all" or generation in named:
        return True
    return not generation and row["severity"] != "critical"


def find(table, generation, check, code, text=""):
    """The first row of a check's code that fits the generation and the text of the line; None without one."""
    for row in table["faults"]:
        if row["check"] != check or "pattern" in row or not applies(row, generation):
            continue
        if code not in row["codes"] and row["codes"] != ["*"]:
            continue
        if "text" not in row or re.search(row["text"], text):
            return row
    return None


def by_id(table, name):
    """The row of that id; None without one."""
    return next((row for row in table["faults"] if row["id"] == name), None)


def links_of(table, accelerator):
    """NVLinks of each GPU of that name; None where the table does not tell."""
    facts = table["generations"].get(generation_of(table, accelerator), {})
    return facts.get("nvlinks", {}).get(accelerator)


if __name__ == "__main__":
    # faults.py links ACCELERATOR: for nvlink.sh; nothing where it is not known
    if sys.argv[1:2] == ["links"] and len(sys.argv) == 3:
        print(links_of(load(), sys.argv[2]) or "")

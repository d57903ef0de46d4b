"""The table of faults (faults.json) and the row of a line of the kernel's log: for what runs on nodes,
and for `ultracluster doctor`. Python 3.9 and newer, nothing but the standard library, and no error for a
table that is damaged: then nothing is known, and unknown drains no node.

A line must begin with the words of its driver, and what decides about a line is longer than the 15 characters
in which a user may name a process, which drivers print. Lines in which the kernel reports a process
("NAME[4711]: segfault ... in FILE") begin with its name and end with a file's, both a user's choice: they are
never a driver's.
"""

import json
import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent / "faults.json"
SEVERITIES = ("none", "warn", "critical")
ACTIONS = ("none", "requeue", "reset", "reboot", "replace")
"""From the mildest on."""
RESULTS = {"none": "ok", "warn": "warn", "critical": "critical"}
DISKS = (("Instance Storage", "instance-store"), ("Elastic Block Store", "ebs"))
"""Words of a controller's model, and the kind of disk that they mean."""
XID = re.compile(r"NVRM: Xid \(([^)]{0,80})\): (\d{1,5})(?!\d)(.*)", re.DOTALL | re.IGNORECASE)
ADDRESS = re.compile(r"(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?![0-9a-fA-F])")
PROCESS = re.compile(r".{0,15}\[\d{1,10}\][: ]", re.DOTALL)
"""A line of a process; no driver writes a number in square brackets so early."""
WHO = re.compile(r",? ?(?:pid=[^,]*,? ?)?(?:name=[^,]*,? ?)?", re.IGNORECASE)


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


def fatal(row):
    """True where it ends running work by the word of the accelerator's maker: what its driver logs, and what
    only a reset, a reboot or another machine fixes. Our own checks look again, and may be wrong everywhere.
    A row may say otherwise (`fatal`)."""
    grave = row["severity"] == "critical" and row["action"] in ("reset", "reboot", "replace")
    logged = row["check"] in ("sxid", "xid") or (row["check"] == "neuron" and "pattern" in row)
    return row.get("fatal", grave and logged) is True


def links_of(table, accelerator):
    """NVLinks of each GPU of that name; None where the table does not tell."""
    facts = table["generations"].get(generation_of(table, accelerator), {})
    return facts.get("nvlinks", {}).get(accelerator)


def judge(message, table, generation, disks=None):
    """The row of a line and the device that it names; (None, "") for a line that is no fault.

    Args:
        message: of the kernel, from its first word on.
        disks: kind of each NVMe controller, `instance-store` or `ebs`; unknown where it is not there.
    """
    if PROCESS.match(message):
        return None, ""
    match = XID.match(message)
    if match:
        where, code, rest = match.groups()
        words = rest[WHO.match(rest).end() :]
        row = _xid(table, generation, str(int(code)), words) if nvidia(table, generation) else None
        return row, address(where)
    for row in table["faults"]:
        if "pattern" in row and applies(row, generation):
            match = re.search(row["pattern"], message)
            if match:
                device = next((one for one in match.groupdict().values() if one), "")
                if "disk" in row and (disks or {}).get(device) != row["disk"]:
                    continue
                return row, address(device) or device
    return None, ""


def _xid(table, generation, code, words):
    """The row of an Xid; that of the one before it where the line names it as its cause."""
    row = find(table, generation, "xid", code, words)
    cause = re.search(row["follows"], words) if row and "follows" in row else None
    if cause and str(int(cause[1])) not in row["codes"]:
        return find(table, generation, "xid", str(int(cause[1]))) or row
    return row


def nvidia(table, generation):
    """Only a node without NVIDIA's driver can have such a line from elsewhere."""
    facts = table["generations"].get(generation)
    return facts is None or facts.get("maker") == "NVIDIA"


def address(text):
    """`0000:9b:00` of `PCI:0000:9b:00 GPU-I:05` and of `00000000:9B:00.0`; empty where there is none."""
    match = ADDRESS.search(text)
    if not match:
        return ""
    parts = match[1].lower().split(":")
    domain = parts[0][-4:] if len(parts) == 3 else "0000"
    return ":".join([domain, *parts[-2:]])


def code_of(row, message):
    """The code of a finding: the Xid's number where the row is its own, else the row's first."""
    match = XID.match(message) if row["check"] == "xid" else None
    number = str(int(match[2])) if match else ""
    return number if number in row["codes"] or (number and row["codes"] == ["*"]) else row["codes"][0]


def kinds_of_disks(root=""):
    """Kind of each NVMe controller that is there, by its name."""
    kinds = {}
    for model in sorted(Path(root + "/sys/class/nvme").glob("nvme*/model")):
        try:
            said = model.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        kinds.update((model.parent.name, kind) for words, kind in DISKS if words in said)
    return kinds


def by_error(table, number):
    """The code of DCGM's check that has this number of DCGM's errors; empty for one that no row names."""
    rows = (row for row in table["faults"] if row["check"] == "dcgm" and number in row.get("errors", ()))
    return next((row["codes"][0] for row in rows), "")


if __name__ == "__main__":
    # faults.py links ACCELERATOR: for nvlink.sh; nothing where it is not known
    if sys.argv[1:2] == ["links"] and len(sys.argv) == 3:
        print(links_of(load(), sys.argv[2]) or "")

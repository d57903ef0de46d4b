"""report.py CHECK VERB FOUND: of what a check has found, one line of JSON and the status that goes with it
(README.md). How grave a fault is, and what is done about it, is in the table and in no check."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

STATUS = {"ok": 0, "warn": 1, "critical": 2, "unknown": 3}
ORDER = ("ok", "unknown", "warn", "critical")
"""What is known to be wrong says more than what is not known."""


def answer(check, verb, lines, table, generation):
    """What is printed. The gravest finding speaks, and the others follow in its detail."""
    found = []
    for line in lines:
        kind, code, gpu, detail, action, result, of_row, at = (line.split("\t") + [""] * 8)[:8]
        one = {"check": check, "verb": verb, "result": kind, "code": code, "detail": detail}
        if kind in ("fault", "row"):
            row = (
                faults.find(table, generation, check, code) if kind == "fault" else faults.by_id(table, code)
            )
            if row is None:
                one.update(result="unknown", code="row", detail=f"the table has no row for {code}: {detail}")
            else:
                one.update(result=faults.RESULTS[row["severity"]], fault=row["id"], action=row["action"])
                if "when_idle" in row:
                    one["when_idle"] = row["when_idle"]
                if faults.fatal(row):
                    one["fatal"] = True
                if kind == "row":
                    one.update(event=True, **time_of(at))
                    one["code"] = of_row or row["codes"][0]
                    if row["check"] != check:
                        one["code"] = f"{row['check']}_{one['code']}"
                # a repeat, which watch.py knows of
                if action in faults.ACTIONS and result in STATUS:
                    one.update(action=action, result=result)
            if gpu not in ("", "-"):
                one["gpu"] = gpu
        elif kind not in STATUS:
            continue
        found.append(one)
    if not found:
        return {
            "check": check,
            "verb": verb,
            "result": "unknown",
            "code": "silent",
            "detail": "it found nothing",
        }
    found.sort(key=lambda one: (-ORDER.index(one["result"]), -rank(one)))
    first, rest = found[0], found[1:]
    if first["result"] == "ok":
        first["code"] = "ok" if "fault" not in first else first["code"]
        first["detail"] = "; ".join(dict.fromkeys(one["detail"] for one in found))
    else:
        also = [f"{one['code']}: {one['detail']}" for one in rest if one["result"] != "ok"]
        others = [dict(one) for one in rest if one["result"] in ("warn", "critical")][:50]
        first["detail"] = "; ".join([first["detail"], *dict.fromkeys(also)])
        if others:
            first["others"] = others
    first["detail"] = first["detail"][:1000]
    return first


def time_of(text):
    """When the kernel has logged it, in seconds since 1970; nothing where that is no number."""
    try:
        return {"at": float(text)}
    except ValueError:
        return {}


def rank(one):
    return faults.ACTIONS.index(one.get("action", "none"))


def main(check, verb, path):
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    table = faults.load()
    line = answer(check, verb, lines, table, faults.generation_of(table, os.environ.get("ACCELERATOR", "")))
    print(json.dumps(line))
    return STATUS[line["result"]]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))

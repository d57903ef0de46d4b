"""Prints the answer of `dcgmi diag -r 2 -j` as lines: `passed N`, or per failed test a code of the table,
a tab and what DCGM says. Nothing, with status 1, for text that holds no result of a test.

DCGM 3 and 4 nest differently; a test has `results`, each with a `status` (Pass, Fail, Skip, Warn) and in
DCGM 4 `errors` or `warnings` with `error_id` and `error_severity` (dcgm_errors.h). The number decides where
the table names it; else the severity: ISOLATE 2 takes the node out of use, RESET 6 asks for a reset.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

SEVERITIES = {2: "isolate", 6: "reset"}
RANK = ("setting", "fail", "pending", "links", "isolate", "reset")
MOST = 20


def tests(value):
    """All objects with a name and results, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and isinstance(value.get("results"), list):
            yield value
        for inner in value.values():
            yield from tests(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from tests(inner)


def asked(errors, table, accelerator):
    """The code of the gravest of a test's errors."""
    codes = []
    for one in errors:
        if isinstance(one, dict):
            code = faults.by_error(table, number(one.get("error_id")))
            if code == "links" and not _has_links(table, accelerator):
                code = "setting"
            codes.append(code or SEVERITIES.get(number(one.get("error_severity")), "fail"))
    return max(codes, key=RANK.index, default="fail")


def _has_links(table, accelerator):
    """Also where the table does not know the accelerator: then DCGM is believed."""
    known = faults.generation_of(table, accelerator)
    return not known or faults.links_of(table, accelerator) is not None


def number(value):
    names = {"ISOLATE": 2, "RESET": 6}
    text = str(value).strip().upper().replace("DCGM_ERROR_", "")
    return names.get(text, int(text) if text.isdigit() else 0)


def as_list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def words(errors):
    said = [one.get("warning") or one.get("error") or "" if isinstance(one, dict) else one for one in errors]
    return " ".join("; ".join(str(one) for one in said if one).split())[:200]


def result(text, accelerator=""):
    """The lines; empty where there is no test."""
    table = faults.load()
    start = text.find("{")
    try:
        # tools that share the output may print before and behind it
        data, _ = json.JSONDecoder().raw_decode(text[start:] if start >= 0 else "")
    except (ValueError, RecursionError):
        return []
    passed, failed, seen = 0, [], False
    for test in tests(data):
        for one in test["results"]:
            if not isinstance(one, dict) or not isinstance(one.get("status"), str):
                continue
            seen = True
            errors = as_list(one.get("errors")) + as_list(one.get("warnings"))
            status = one["status"].strip().lower()
            if status.startswith("fail"):
                where = one.get("entity_id", one.get("gpu_id", one.get("gpu_ids", "")))
                code = asked(errors, table, accelerator)
                failed.append(f"{code}\t{test['name']} {where}: {words(errors) or 'failed'}")
            elif status.startswith("pass"):
                passed += 1
    if not seen:
        return []
    return [" ".join(line.split(" ")) for line in failed[:MOST]] or [f"passed {passed}"]


if __name__ == "__main__":
    lines = result(sys.stdin.read(), os.environ.get("ACCELERATOR", ""))
    print("\n".join(lines))
    sys.exit(0 if lines else 1)

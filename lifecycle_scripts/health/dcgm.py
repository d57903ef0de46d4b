"""What `dcgmi diag -r 2 -j` printed, as lines: `passed N`, or for each test that failed `replace`, `reset` or
`fail`, a tab and what DCGM says. Nothing, with status 1, for text that holds no result of a test.

DCGM 3 and 4 nest differently; a test has `results`, each with a `status` (Pass, Fail, Skip, Warn) and in
DCGM 4 `errors` or `warnings` with `error_severity`: ISOLATE 2 asks for a replacement, RESET 6 for a reset
(dcgm_errors.h).
"""

import json
import sys

SEVERITIES = {2: "replace", 6: "reset"}
RANK = ("fail", "reset", "replace")
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


def severity(errors):
    """The gravest that a test's errors ask for; the number of its severity, or its name."""
    asked = [
        SEVERITIES.get(number(one.get("error_severity")), "fail") for one in errors if isinstance(one, dict)
    ]
    return max(asked, key=RANK.index, default="fail")


def number(value):
    names = {"ISOLATE": 2, "RESET": 6}
    text = str(value).strip().upper().replace("DCGM_ERROR_", "")
    return names.get(text, int(text) if text.isdigit() else 0)


def as_list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def words(errors):
    said = [one.get("warning") or one.get("error") or "" if isinstance(one, dict) else one for one in errors]
    return " ".join("; ".join(str(one) for one in said if one).split())[:200]


def result(text):
    """The lines; empty where there is no test."""
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
                failed.append(f"{severity(errors)}\t{test['name']} {where}: {words(errors) or 'failed'}")
            elif status.startswith("pass"):
                passed += 1
    if not seen:
        return []
    return [" ".join(line.split(" ")) for line in failed[:MOST]] or [f"passed {passed}"]


if __name__ == "__main__":
    lines = result(sys.stdin.read())
    print("\n".join(lines))
    sys.exit(0 if lines else 1)

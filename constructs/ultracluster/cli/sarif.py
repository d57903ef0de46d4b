"""Findings as SARIF 2.1.0, which code scanning services and editors read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020-03-27.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ultracluster.cli.rules_page import SHAPE
from ultracluster.cli.workflow_annotations import repository_path
from ultracluster.config import Finding
from ultracluster.rules import all_rules
from ultracluster.version import __version__


def sarif(findings: Iterable[Finding]) -> str:
    """A log with one run; its rules are those that the findings are of."""
    ordered = list(findings)
    codes = sorted({one.code for one in ordered})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ultracluster",
                        "semanticVersion": __version__,
                        "rules": _rules(codes),
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, codes.index(one.code)) for one in ordered],
            }
        ],
    }
    return json.dumps(log, indent=2).replace("##[", "#\\u0023[")  # as in `json_output`


def _rules(codes: list[str]) -> list[dict[str, Any]]:
    known = {rule.id: rule for rule in all_rules()}
    made: list[dict[str, Any]] = []
    for code in codes:
        row: dict[str, Any] = {"id": code}
        if rule := known.get(code):
            row["shortDescription"] = {"text": rule.title}
            row["help"] = {"text": f"Source: {rule.source} ({rule.date}). `ultracluster rules {code}`"}
            row["defaultConfiguration"] = {"level": rule.severity}
        elif code in SHAPE:
            row["shortDescription"] = {"text": SHAPE[code]}
        made.append(row)
    return made


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    text = finding.message + (f"\nInstead: {finding.instead}" if finding.instead else "")
    row: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": text},
    }
    if place := finding.location:
        row["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(repository_path(place.file))},
                    "region": {
                        "startLine": place.line,
                        "startColumn": place.column,
                        "endColumn": place.column + max(1, place.length),
                    },
                },
                "logicalLocations": [{"fullyQualifiedName": finding.dotted or "."}],
            }
        ]
    if finding.acknowledged:
        row["suppressions"] = [{"kind": "inSource", "justification": finding.acknowledged}]
    return row

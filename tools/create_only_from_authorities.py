#!/usr/bin/env python
"""Rewrites change/create_only.json from the CloudFormation registry schemas that cfn-lint ships.

    python tools/create_only_from_authorities.py

A row for each resource type that an environment can be made of: what CloudFormation can only set when it
creates the resource, so that a change of it makes a new one. tests/change compares it with a fresh run.
"""

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "constructs" / "ultracluster" / "change" / "create_only.json"

SERVICES = {
    *("APS", "AutoScaling", "Budgets", "CloudFormation", "CloudWatch", "EC2", "ECR", "EFS", "EKS", "Events"),
    *("FSx", "Grafana", "IAM", "ImageBuilder", "KMS", "Lambda", "Logs", "PCS", "RDS", "ResourceGroups"),
    *("Route53", "S3", "SNS", "SQS", "SSM", "Scheduler", "SecretsManager", "StepFunctions"),
}
TYPES = {
    "AWS::SageMaker::Cluster",
    "AWS::SageMaker::ClusterSchedulerConfig",
    "AWS::SageMaker::ComputeQuota",
}
"""Of SageMaker only what HyperPod is."""


def create_only() -> dict[str, Any]:
    """The document of create_only.json."""
    schemas = _folder()
    newest: dict[str, str] = json.loads((schemas / "providers" / "us-east-1.json").read_text())
    rows = {
        name: row(json.loads((schemas / "resources" / f"{file}.json").read_text()))
        for name, file in sorted(newest.items())
        if name in TYPES or name.split("::")[1] in SERVICES
    }
    date = json.loads((schemas / "version.json").read_text())["schema_date"][:10]
    about = {
        "what": "Properties that CloudFormation sets only when it creates a resource. Written by "
        "tools/create_only_from_authorities.py.",
        "date": date,
        "source": f"CloudFormation registry schemas of us-east-1, cfn-lint {version('cfn-lint')}",
        "always": "createOnlyProperties: a change replaces the resource",
        "sometimes": "conditionalCreateOnlyProperties: a change replaces it in cases that no schema tells",
        "unknown": "a type that is not here is unknown; an empty row has no such property",
    }
    return {"about": about, "types": rows}


def row(schema: dict[str, Any]) -> dict[str, list[str]]:
    """Paths with slashes, `*` for each element of a list; a path below another one says nothing more."""
    return {
        key: sorted(paths)
        for key, name in (
            ("always", "createOnlyProperties"),
            ("sometimes", "conditionalCreateOnlyProperties"),
        )
        if (paths := shortest({path.removeprefix("/properties/") for path in schema.get(name) or []}))
    }


def shortest(paths: set[str]) -> set[str]:
    """The paths that do not stand below another one."""
    return {path for path in paths if not any(path.startswith(f"{other}/") for other in paths)}


def render(document: dict[str, Any]) -> str:
    """JSON with one line per row, so that a change shows as the rows it touches."""
    sections = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in section.items())
        + "\n  }"
        for name, section in document.items()
    ]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _folder() -> Path:
    """cfn-lint's schemas, found without importing it."""
    spec = find_spec("cfnlint")
    if spec is None or spec.origin is None:
        raise SystemExit("cfn-lint is not installed: run `make setup-dev`")
    return Path(spec.origin).parent / "data" / "schemas"


if __name__ == "__main__":
    TABLE.write_text(render(create_only()))

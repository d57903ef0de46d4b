"""From an environment to templates, in the way that app.py does it, and questions to ask of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from ultracluster.app import cdk_flags
from ultracluster.config import Environment
from ultracluster.stacks import build

Template = dict[str, Any]


@dataclass(frozen=True)
class Synthesised:
    """A cloud assembly on disk."""

    folder: Path
    templates: dict[str, Template]
    """Template by stack name."""
    findings: set[tuple[str, str]]
    """(rule, construct path) of everything that validation or cdk-nag says and nobody acknowledged."""
    acknowledged: dict[str, dict[str, str]]
    """Reason by rule, by construct path."""

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of one type over all stacks, by `stack/logical id`."""
        return {
            f"{stack}/{logical_id}": resource
            for stack, template in self.templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == kind
        }


def app_in(folder: Path, *, validate: bool = True) -> App:
    """An app with the flags that every app of ours has."""
    return App(
        outdir=str(folder),
        context=cdk_flags(),
        analytics_reporting=False,
        builtin_cloud_formation_validation=validate,
    )


def synthesise(config: Environment, folder: Path, *, validate: bool = True) -> Synthesised:
    """Build and synthesise an environment; findings are returned, not raised."""
    app = app_in(folder, validate=validate)
    build(app, config)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def templates_alone(config: Environment, folder: Path) -> dict[str, Template]:
    """Templates of an environment by stack name, unchecked: a quarter of the time."""
    app = app_in(folder, validate=False)
    build(app, config)
    app.synth()
    return _templates(folder)


def finish(app: App, folder: Path) -> Synthesised:
    """Synthesise an app and read what it wrote."""
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
    return Synthesised(folder, _templates(folder), _findings(folder), dict(_acknowledged(folder)))


def _templates(folder: Path) -> dict[str, Template]:
    return {
        file.name.removesuffix(".template.json"): json.loads(file.read_text())
        for file in sorted(folder.glob("*.template.json"))
    }


def _findings(folder: Path) -> set[tuple[str, str]]:
    report = json.loads((folder / "validation-report.json").read_text())
    return {
        (violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def _acknowledged(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """As the assembly has it: to ask each construct takes seconds."""
    for file in sorted(folder.glob("*.metadata.json")):
        for path, entries in json.loads(file.read_text()).items():
            for entry in entries:
                if entry["type"] == "aws:cdk:acknowledged-rules":
                    yield path.removeprefix("/"), entry["data"]


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """(logical id, statement) of every IAM policy, resource policy and key policy of a template."""
    for logical_id, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        documents = [properties.get("PolicyDocument"), properties.get("KeyPolicy")]
        documents += [policy.get("PolicyDocument") for policy in properties.get("Policies", [])]
        for document in documents:
            for statement in (document or {}).get("Statement", []):
                yield logical_id, statement


def many(value: Any) -> list[Any]:
    """IAM's one-or-many as a list."""
    return value if isinstance(value, list) else [value]


def cfn_lint(files: list[str], region: str) -> str:
    """What cfn-lint says of templates in a Region, warnings included; empty if nothing.

    As its command does, but in this process: it starts once, and reads the schema of a resource once.
    """
    from cfnlint.config import ConfigMixIn
    from cfnlint.runner import Runner

    not_ours = ["W3005"]  # the CDK's own Lambda construct names its role in DependsOn, too
    options = ["--format", "parseable", "--regions", region, "--ignore-checks", *not_ours, "-t", *files]
    runner = Runner(ConfigMixIn(options))
    return runner.formatter.print_matches(list(runner.run()), runner.rules, config=runner.config) or ""

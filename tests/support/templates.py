"""From an environment to templates, in the way that app.py does it, and questions to ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assemblies import Synthesised, Template, assembly, templates_alone

if TYPE_CHECKING:  # whoever imports the CDK starts its kernel; most tests find their assembly in the cache
    from aws_cdk import App

    from ultracluster.config import Environment

__all__ = ["Synthesised", "Template", "assembly", "templates_alone"]


def app_in(folder: Path, *, validate: bool = True, context: Mapping[str, bool] | None = None) -> App:
    """An app with the flags that every app of ours has, and with further context."""
    from aws_cdk import App

    from ultracluster.app import cdk_flags

    return App(
        outdir=str(folder),
        context={**cdk_flags(), **(context or {})},
        analytics_reporting=None if context else False,  # as its context says
        builtin_cloud_formation_validation=validate,
    )


def synthesise(
    config: Environment,
    folder: Path,
    *,
    validate: bool = True,
    nag: bool = True,
    context: Mapping[str, bool] | None = None,
) -> Synthesised:
    """Build and synthesise an environment now; `assembly` keeps what comes out, and most tests want that.

    Findings of strict validation and cdk-nag are returned, not raised; without both, what a rule refuses is
    raised.
    """
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks

    from ultracluster.stacks import build

    app = app_in(folder, validate=validate, context=context)
    build(app, config)
    if nag:
        Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    elif not validate:
        app.synth()
        return Synthesised(folder)
    return finish(app, folder)


def finish(app: App, folder: Path) -> Synthesised:
    """Synthesise an app and read what it wrote."""
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
    return Synthesised(folder)


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


def cfn_lint(files: Iterable[Path], region: str) -> str:
    """What cfn-lint says of templates in a Region, warnings included; empty if nothing.

    As its command does, but in this process: it starts once, and reads the schema of a resource once.
    """
    from cfnlint.config import ConfigMixIn
    from cfnlint.runner import Runner

    _keep_validators()
    not_ours = ["W3005"]  # the CDK's own Lambda construct names its role in DependsOn, too
    names = [str(file) for file in files]
    assert names, "no template"
    options = ["--format", "parseable", "--regions", region, "--ignore-checks", *not_ours, "-t", *names]
    runner = Runner(ConfigMixIn(options))
    return runner.formatter.print_matches(list(runner.run()), runner.rules, config=runner.config) or ""


@cache
def _keep_validators() -> None:
    """Let cfn-lint make each class of validators once: it makes 2,500 for 50 templates, of 13 kinds.

    A quarter of its time. A class is decided by what checks each keyword, and by the values of its filter.
    """
    from cfnlint.jsonschema import validators as schemas

    create, kept = schemas.create, dict[Any, Any]()

    def create_once(validators: Any = None, function_filter: Any = None, fn_resolvers: Any = None) -> Any:
        parts = (
            tuple((validators or {}).items()),
            repr(function_filter),
            tuple((fn_resolvers or {}).items()),
        )
        if parts not in kept:
            kept[parts] = create(validators, function_filter, fn_resolvers)
        return kept[parts]

    schemas.create = create_once

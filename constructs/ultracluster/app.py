"""The CDK app of a project: an environment file -> stacks. A project's own app.py calls `main`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultracluster.config import Environment, InvalidEnvironmentError, load, render
from ultracluster.nodejs import MORE, NEXT, NoNodeError, with_node
from ultracluster.rules import enforce

if TYPE_CHECKING:
    import aws_cdk as cdk

Beside = Callable[["cdk.App", Environment], object]
"""Adds stacks of your own to the app, after ours."""


def main(app_file: str, *, beside: Beside | None = None) -> int:
    """Synthesise the environment that the context `env` names; returns the exit code.

    Args:
        app_file: the project's app.py; environments/ lies next to it.
        beside: adds your own stacks, given the app and the environment.
    """
    # read as the CLI hands it over, so that a wrong environment is refused before anything is written
    name = json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}")).get("env")
    if not name:
        sys.stderr.write("Name an environment: ultracluster synth dev (or cdk synth -c env=dev)\n")
        return 2
    further: list[list[str]] = json.loads(os.environ.get(MORE, "[]"))
    wanted: list[tuple[str, str | None]] = [(str(name), None), *((one, out) for one, out in further)]
    environments: list[Environment] = []
    for number, (one, _) in enumerate(wanted):
        _about(number, further)
        environment = _checked(app_file, one)
        if environment is None:
            return 2
        environments.append(environment)
    for number, ((one, out), environment) in enumerate(zip(wanted, environments, strict=True)):
        _about(number, further)
        code = synthesise(environment, beside, out=out, context={"env": one} if out else None)
        if code:
            return code
    return 0


def _about(number: int, further: list[list[str]]) -> None:
    if further:
        sys.stderr.write(f"{NEXT}{number}\n")


def _checked(app_file: str, name: str) -> Environment | None:
    """An environment that breaks no rule; None where what is wrong was said."""
    file = Path(name)
    if file.suffix not in {".yaml", ".yml"}:
        file = Path(app_file).resolve().parent / "environments" / f"{name}.yaml"
    try:
        loaded = load(file)
        warnings = enforce(loaded)
        os.environ.update(with_node(os.environ))
    except (InvalidEnvironmentError, NoNodeError) as error:
        sys.stderr.write(f"{error}\n")
        return None
    if unread := [warning for warning in warnings if not warning.acknowledged]:
        sys.stderr.write(f"{render(unread)}\n")
    return loaded.environment


def synthesise(
    environment: Environment,
    beside: Beside | None = None,
    *,
    out: str | None = None,
    context: dict[str, str] | None = None,
) -> int:
    """Write the templates of an environment that breaks no rule to where the CDK reads them.

    Args:
        environment: what to make.
        beside: adds stacks of your own.
        out: another folder than the one that the CDK's command names.
        context: takes precedence over the context of the command.

    Returns 1, with the CDK's report on standard error, where its validation or cdk-nag refuses a template.
    """
    import aws_cdk as cdk  # only now: what is wrong is said in a blink
    from cdk_nag import AwsSolutionsChecks

    from ultracluster.stacks import build

    app = cdk.App(context=cdk_flags(), outdir=out, post_cli_context=context)
    build(app, environment)
    if beside:
        beside(app, environment)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


@cache
def cdk_flags() -> dict[str, Any]:
    """The CDK's feature flags under which all templates are made: `cdk_flags.json`.

    For `aws_cdk.App(context=...)`: a flag in a project's cdk.json takes precedence.
    """
    file = Path(__file__).with_name("cdk_flags.json")
    return json.loads(file.read_text(encoding="utf-8"))["flags"]


if __name__ == "__main__":
    sys.exit(main("app.py"))  # environment files outside of a project

"""An environment file -> stacks. Run by the CDK CLI: `cdk synth -c env=dev`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ultracluster.config import Environment, InvalidEnvironmentError, load, render
from ultracluster.rules import enforce

ROOT = Path(__file__).resolve().parent


def main() -> int:
    # read as the CLI hands it over, so that a wrong environment is refused before anything is written
    name = json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}")).get("env")
    if not name:
        print("name an environment: cdk synth -c env=dev", file=sys.stderr)
        return 2
    try:
        loaded = load(_environment_file(str(name)))
        warnings = enforce(loaded)
    except InvalidEnvironmentError as error:
        print(error, file=sys.stderr)
        return 2
    if unread := [warning for warning in warnings if not warning.acknowledged]:
        print(render(unread), file=sys.stderr)
    synthesise(loaded.environment)
    return 0


def synthesise(config: Environment) -> None:
    import aws_cdk as cdk  # only now: what is wrong is said in a blink
    from cdk_nag import AwsSolutionsChecks

    from ultracluster.stacks import build

    app = cdk.App()
    build(app, config)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


def _environment_file(name: str) -> Path:
    file = Path(name)
    return file if file.suffix == ".yaml" else ROOT / "environments" / f"{name}.yaml"


if __name__ == "__main__":
    sys.exit(main())

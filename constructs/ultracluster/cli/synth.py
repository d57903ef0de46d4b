"""`ultracluster synth`: the templates of an environment, with Python and Node.js alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.plan import plan
from ultracluster.cli.projects import EnvironmentName, assembled, opened
from ultracluster.cli.terminal import quiet, remark


def synth(
    environment: EnvironmentName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder; the project's cdk.out by default.", show_default=False),
    ] = None,
) -> None:
    """Write the CloudFormation templates of an environment, then print its plan, except with --quiet.

    Needs a project (a checkout, or what `ultracluster new` makes) and Node.js, which `pip install
    'ultracluster[cli]'` brings; no AWS credentials, no network, no CDK command. `cdk deploy --app FOLDER`
    takes what it writes, and so does `ultracluster deploy`. Exit code 2: nothing can be deployed.
    """
    here = opened(environment)
    out = output or here.root / "cdk.out"
    assembled(here, out)
    remark(f"the templates of {here.environment.name} are in {shlex.quote(str(out))}")
    if not quiet():
        plan(here.file)

"""`ultracluster wait`: until every node of a deployed environment is ready, or will not be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account import wait as waiting
from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.wait import diagnosis, smoke, smoke_kubernetes, smoke_slurm
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.wait_display import Display
from ultracluster.cli.wait_text import as_dict, as_text, exit_code
from ultracluster.model import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from ultracluster.account.aws import Account
    from ultracluster.account.doctor import Examination
    from ultracluster.account.wait import Result
    from ultracluster.account.wait.hyperpod import HyperPodSource
    from ultracluster.account.wait.instances import InstanceSource
    from ultracluster.account.wait.smoke import Smoke
    from ultracluster.config import Environment

INTERRUPTED = 130


def wait(
    environment: EnvironmentArgument,
    timeout: Annotated[
        int | None,
        typer.Option(min=1, help="Minutes at most; 90, or 240 with deep health checks.", show_default=False),
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke/--no-smoke", help="End with a collective over two nodes of each group.")
    ] = True,
    image: Annotated[
        str | None,
        typer.Option(help="Kubernetes: image with nccl-tests for the collective.", show_default=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Degraded nodes are failures.")] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Wait until every node is ready, then run a collective over two of them.

    Ready: its scripts have ended well and said so, file systems are mounted, EFA interfaces and libfabric's
    provider are as many as the type has, and the scheduler takes jobs for it. Until one node of a group is
    ready the first failure in it ends the wait, and `doctor` is asked about the node.

    Exit code 0 = ready, 1 = something failed, 2 = bad input or the account cannot be asked, 3 = time is up,
    or something could not be judged from here (the command for it is printed), 130 = interrupted.
    """
    config = load_environment(environment)
    account = open_account(config, profile)
    limit = timeout or waiting.time_limit(resolve(config))
    smokes: list[Smoke] = []
    found: Examination | None = None
    try:
        source = waiting.source_of(account, resolve(config))
        with Display() as display:
            result = waiting.wait(source, timeout=limit * 60.0, report=display.show, say=display.say)
            if result.outcome == "ready" and smoke:
                smokes = collectives(account, config, source, result, image, display.say)
            code = exit_code(result, smokes, strict=strict)
            if code == 1 or result.outcome == "late":
                found = _examine(account, config, source, result, smokes, display.say)
    except AccountError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        refuse("Stopped waiting; the nodes are still starting. Run the same command again.", code=INTERRUPTED)
    if as_json:
        write_json("wait", as_dict(config.name, result, smokes, found, code, strict=strict))
    else:
        typer.echo(as_text(config.name, result, smokes, found, code, strict=strict))
    raise typer.Exit(code)


def collectives(
    account: Account,
    config: Environment,
    source: HyperPodSource | InstanceSource,
    result: Result,
    image: str | None,
    say: Callable[[str], None],
) -> list[Smoke]:
    """The collective on each group that has a fabric."""
    cluster = resolve(config)
    pairs, made = smoke.pairs(cluster, result.look, source.nodes)
    for pair in pairs:
        say(f"collective over two nodes of {pair.group}: {', '.join(node.name for node in pair.nodes)}")
        if cluster.traits.kubernetes:
            one = smoke_kubernetes.run_on_kubernetes(
                cluster, pair, api=lambda: KubernetesApi(account, config.cluster_name), image=image, say=say
            )
        else:
            assert source.shell
            one = smoke_slurm.run_on_slurm(
                cluster, pair, shell=source.shell, entrance=source.entrance,
                slurm_nodes=source.slurm_nodes, say=say,
            )  # fmt: skip
        made.append(one)
    return made


def _examine(
    account: Account,
    config: Environment,
    source: HyperPodSource | InstanceSource,
    result: Result,
    smokes: list[Smoke],
    say: Callable[[str], None],
) -> Examination | None:
    if result.outcome == "ready" and not any(one.verdict == "fail" for one in smokes):
        return None  # degraded nodes that count: their own words say why
    say(f"asking what is wrong{' with ' + result.node if result.node else ''}")
    return diagnosis.examine_after(account, resolve(config), source, result)

"""`ultracluster job shell` on Kubernetes: a job that holds nodes, and a terminal in its first pod."""

from __future__ import annotations

import contextlib
import secrets
import signal
import subprocess
import sys
import time as clock
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.account.aws import AccountError
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import refuse
from ultracluster.cli.job_watch import summary
from ultracluster.cli.progress import LINE
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.manifests.shell_job import seconds_of, shell_manifests
from ultracluster.jobs.notebook import address
from ultracluster.jobs.queue.kubernetes import KubernetesQueue, kubectl
from ultracluster.jobs.queue.protocol import NoSuchJobError, NotSubmittedError, Submission, UnansweredError
from ultracluster.jobs.request import Wishes, wanted_job
from ultracluster.kubernetes.yaml_text import yaml_text

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.jobs.queue.protocol import QueuedJob
    from ultracluster.model import Cluster

EVERY = 3.0
"""Seconds between two looks while it waits."""
_PARTING = (signal.SIGHUP, signal.SIGTERM)


def kubernetes_shell(
    cluster: Cluster,
    environment: Path,
    *,
    nodes: int,
    gpus: int | None,
    time: str,
    ports: tuple[int, int] | None,
    team: str | None,
    group: str | None,
    image: str | None,
    profile: str | None,
    dry_run: bool,
    notebook: tuple[str, str] | None = None,
) -> None:
    """Submit the job, wait for it, open the terminal, and end the job with it.

    Args:
        notebook: a script that is run instead of a shell, and the line that it reads.
    """
    name = f"{'notebook' if notebook else 'shell'}-{secrets.token_hex(3)}"
    try:
        text = shell_text(
            cluster, name, nodes=nodes, gpus=gpus, time=time, team=team, group=group, image=image
        )
    except ValueError as error:
        refuse(f"{environment}: {error}")
    if dry_run:
        typer.echo(text, nl=False)
        return
    if not notebook and not at_terminal():
        refuse("a shell needs a terminal; for a job without one: `ultracluster job submit`")
    if missing := kubectl.missing_programs():
        refuse(missing)
    account = open_account(cluster.environment, profile)
    queue, job = _submitted(account, cluster, text, name, team, environment)
    status = 0
    try:
        with _parting():
            pod = _wait(queue, job.id, environment)
            if notebook and ports:
                typer.echo(address(ports[0], notebook[1]))
            status = _work(queue, account, pod, ports, notebook)
    except (AccountError, NoSuchJobError) as error:
        typer.echo(one_line(str(error)), err=True)
        status = 2
    except KeyboardInterrupt:
        status = 130
    finally:
        _end(queue, job.id, environment)
    raise typer.Exit(status)


def _submitted(
    account: Account, cluster: Cluster, text: str, name: str, team: str | None, environment: Path
) -> tuple[KubernetesQueue, QueuedJob]:
    """The job, and the queue that has it; exit code 2, or 3 where that is not known."""
    try:
        queue = KubernetesQueue(account, cluster, team=team, say=_say)
        return queue, queue.submit(Submission(text, name, secrets.token_hex(4)))
    except UnansweredError as error:
        refuse(
            f"Not known whether it was submitted: {error}. `ultracluster job list {environment}` shows it, "
            "if it was",
            code=3,
        )
    except (NotSubmittedError, AccountError) as error:
        refuse(f"Not submitted: {error}")


def shell_text(
    cluster: Cluster,
    name: str,
    *,
    nodes: int,
    gpus: int | None,
    time: str,
    team: str | None,
    group: str | None,
    image: str | None,
) -> str:
    """The manifests.

    Raises:
        ValueError: there can be none.
    """
    if not image:
        raise ValueError("a pod needs an image: --image, the one that your jobs have")
    job = wanted_job(cluster, Wishes(nodes=nodes, team=team, group=group, image=image, name=name))
    made = shell_manifests(cluster, job, gpus=gpus, seconds=seconds_of(time))
    return "---\n".join(yaml_text(one) for one in made)


def _wait(queue: KubernetesQueue, job_id: str, environment: Path) -> tuple[str, str, str]:
    """The first pod, once it runs; what it waits for is said when that changes."""
    said, failures = "", 0
    while True:
        try:
            if pod := queue.first_pod(job_id):
                return pod
            job = queue.job(job_id)
            failures = 0
        except AccountError:
            failures += 1
            if failures == 5:
                raise
            pause()
            continue
        if job.over:
            refuse(f"{summary(job, '')}: no shell can be opened in it", code=1)
        line = summary(job, "")
        if line != said:
            _say(line)
            said = line
        pause()


def _work(
    queue: KubernetesQueue,
    account: Account,
    pod: tuple[str, str, str],
    ports: tuple[int, int] | None,
    notebook: tuple[str, str] | None,
) -> int:
    """The terminal, or the notebook, until it ends, with the port beside it."""
    namespace, name, container = pod
    surroundings = kubectl.child_environment()
    with kubectl.configuration(queue.api, account, namespace) as file:
        carrier = None
        if ports:
            _say(f"http://127.0.0.1:{ports[0]} is port {ports[1]} of 127.0.0.1 in {name}")
            carrier = subprocess.Popen(  # noqa: S603, no shell; names are Kubernetes' own
                kubectl.forward_words(file, name, ports),
                env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            if notebook:
                script, line = notebook
                words = kubectl.script_words(file, name, container, script)
                return subprocess.run(  # noqa: S603, no shell; names are Kubernetes' own
                    words, env=surroundings, input=f"{line}\n".encode(), check=False
                ).returncode
            with LINE.held():  # the terminal is the shell's
                done = subprocess.run(  # noqa: S603, no shell; names are Kubernetes' own
                    kubectl.shell_words(file, name, container), env=surroundings, check=False
                )
            return done.returncode
        finally:
            if carrier:
                carrier.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    carrier.wait(5)


def _end(queue: KubernetesQueue, job_id: str, environment: Path) -> None:
    why = queue.cancel([job_id]).get(job_id, "")
    if why and "there is no job" not in why:
        line = f"{job_id} is not ended ({why}): `ultracluster job cancel {environment} {job_id}`"
        typer.echo(one_line(line), err=True)
    else:
        _say(f"{job_id} is given back.")


def at_terminal() -> bool:
    """Whether somebody types and reads here."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def pause() -> None:
    """Until the next look."""
    clock.sleep(EVERY)


@contextmanager
def _parting() -> Generator[None]:
    """A terminal that is closed gives the nodes back, too."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    former = {one: signal.signal(one, leave) for one in _PARTING}
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


def _say(line: str) -> None:
    remark(one_line(line))


__all__ = ["kubernetes_shell", "shell_text"]

"""`ultracluster job shell`: an allocation with a shell or a notebook, and a port of it on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import sys
import termios
import time as clock
import tty
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account.aws import AccountError
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import EnvironmentArgument, ProfileOption, load_environment, refuse
from ultracluster.cli.job_options import GroupOption, TeamOption
from ultracluster.cli.job_queue import AsOption
from ultracluster.cli.job_shell_kubernetes import kubernetes_shell
from ultracluster.cli.progress import LINE, working
from ultracluster.cli.terminal import hand_over, quiet, remark
from ultracluster.config.plain_text import one_line
from ultracluster.jobs import notebook as notebooks
from ultracluster.jobs.notebook import address
from ultracluster.jobs.queue.forward import ALIVE, Forward, node_command
from ultracluster.jobs.queue.person import person_session
from ultracluster.jobs.queue.person_session import PersonSession, SessionEndedError, missing_programs
from ultracluster.jobs.queue.protocol import NoSuchJobError
from ultracluster.jobs.queue.slurm_queue import SlurmQueue, checked
from ultracluster.model import resolve
from ultracluster.model.job_fit import check_job, check_team, job_pool

if TYPE_CHECKING:
    from ultracluster.account.sessions import Session
    from ultracluster.model import Cluster

_TIME = re.compile(r"\d{1,4}-\d{1,2}(:\d{2}){0,2}|\d{1,6}(:\d{2}){0,2}")
_PORT = re.compile(r"(?:(\d{1,5}):)?(\d{1,5})")
SLURM_WAITS = 24 * 3600.0
"""Seconds for which a port waits for the allocation."""


def shell(
    environment: EnvironmentArgument,
    nodes: Annotated[int, typer.Option(min=1, help="How many.")] = 1,
    gpus: Annotated[
        int | None,
        typer.Option(min=0, help="GPUs of each node; all of a whole node by default.", show_default=False),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="For how long at the most; 2:00:00 by default, and 8:00:00 for a notebook.",
            show_default=False,
        ),
    ] = None,
    notebook: Annotated[
        bool,
        typer.Option(
            "--notebook",
            help="JupyterLab on one node instead, opened here by a token; Ctrl-C ends it. On port 8888 of "
            "this machine, or that of --forward.",
        ),
    ] = False,
    forward: Annotated[
        str,
        typer.Option(
            metavar="PORT",
            help="This port of the first node's own 127.0.0.1 on yours, as for a notebook; LOCAL:PORT for "
            "another one here.",
            show_default=False,
        ),
    ] = "",
    job: Annotated[
        str,
        typer.Option(
            help="Attach to this running job instead of allocating nodes; it outlives the shell.",
            show_default=False,
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run there; nothing is asked.")
    ] = False,
    user: AsOption = "",
    team: TeamOption = None,
    group: GroupOption = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Container image of the shell, or with JupyterLab, on Kubernetes.", show_default=False
        ),
    ] = None,
    profile: ProfileOption = None,
) -> None:
    """A shell on nodes of your own for a while; they are given back when the shell ends.

    Exit code 2 = refused, or no session can be opened.
    """
    cluster = resolve(load_environment(environment))
    time = time or ("8:00:00" if notebook else "2:00:00")
    if notebook:
        if nodes != 1 or job:
            refuse("--notebook has one node of its own: leave --nodes and --job out")
        port = _ports(forward)[0] if forward else 8888
        _notebook(
            cluster, environment, gpus=gpus, time=time, port=port, user=user, team=team, group=group,
            image=image, profile=profile, dry_run=dry_run,
        )  # fmt: skip
        return
    if cluster.traits.kubernetes:
        if user:
            refuse(f"--as is for Slurm, and this is {cluster.settings.kind}: your IAM role is who you are")
        if job:
            refuse(f"--job is for Slurm, and this is {cluster.settings.kind}: `kubectl exec` into its pod")
        kubernetes_shell(
            cluster,
            environment,
            nodes=nodes,
            gpus=gpus,
            time=time,
            ports=_ports(forward) if forward else None,
            team=team,
            group=group,
            image=image,
            profile=profile,
            dry_run=dry_run,
        )
        return
    if image:
        refuse(f"--image is for Kubernetes, and this is {cluster.settings.kind}: srun has containers")
    ports = _ports(forward) if forward else None
    name = f"shell-{secrets.token_hex(3)}"
    try:
        if job:
            if nodes != 1 or gpus is not None or group is not None:
                raise ValueError("--job has its nodes: leave --nodes, --gpus and --group out")
            command = within_job(job)
        else:
            command = allocation(
                cluster, nodes=nodes, gpus=gpus, time=time, team=team, group=group, name=name
            )
    except (ValueError, NoSuchJobError) as error:
        refuse(f"{environment}: {error}")
    if dry_run:
        typer.echo(command)
        return
    account = open_account(cluster.environment, profile)
    try:
        session, who, node = person_session(account, cluster, user)
        if missing := missing_programs():
            refuse(missing)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            refuse("a shell needs a terminal; for a job without one: `ultracluster job submit`")
        what = f"a shell in job {job}" if job else f"{nodes} node{'s' if nodes > 1 else ''}"
        remark(one_line(f"Asking for {what} on {node} as {who}."))
        _run(session, who, command, job or name, ports)
    except AccountError as error:
        refuse(str(error))


def _notebook(
    cluster: Cluster,
    environment: Path,
    *,
    gpus: int | None,
    time: str,
    port: int,
    user: str,
    team: str | None,
    group: str | None,
    image: str | None,
    profile: str | None,
    dry_run: bool,
) -> None:
    """A notebook on a node of the cluster; the node is given back with Ctrl-C."""
    there, token = notebooks.new_port(), notebooks.new_token()
    try:
        pool = job_pool(cluster, group)
        if gpus is None and pool.resource == "nvidia.com/gpu":
            gpus = 1
        if cluster.traits.kubernetes:
            if user:
                raise ValueError(f"--as is for Slurm, and this is {cluster.settings.kind}")
            lustre = cluster.lustre_of(pool.group)
            script = notebooks.notebook_script(there, folder=lustre.mount_path if lustre else "", root=True)
            kubernetes_shell(
                cluster, environment, nodes=1, gpus=gpus, time=time, ports=(port, there), team=team,
                group=group, image=image, profile=profile, dry_run=dry_run, notebook=(script, token),
            )  # fmt: skip
            return
        if image:
            raise ValueError(f"--image is for Kubernetes, and this is {cluster.settings.kind}")
        name = f"notebook-{secrets.token_hex(3)}"
        run = ["srun", "--nodes=1", "--ntasks=1", "--overlap", "bash", "--login", "-c"]
        command = allocation(
            cluster, nodes=1, gpus=gpus, time=time, team=team, group=group, name=name,
            run=[*run, notebooks.notebook_script(there)],
        )  # fmt: skip
    except ValueError as error:
        refuse(f"{environment}: {error}")
    if dry_run:
        typer.echo(command)
        return
    _open_notebook(cluster, user, profile, command, name, ports=(port, there), token=token)


def _open_notebook(
    cluster: Cluster,
    user: str,
    profile: str | None,
    command: str,
    name: str,
    *,
    ports: tuple[int, int],
    token: str,
) -> None:
    account = open_account(cluster.environment, profile)
    try:
        session, who, node = person_session(account, cluster, user)
        if missing := missing_programs():
            refuse(missing)
        remark(one_line(f"Asking for a notebook on {node} as {who}. Ctrl-C ends it."))
        stop = Event()
        carried = _Carried(session, who, name, ports, stop)
        carried.begin()
        opened = PersonSession(session.command, user=who)
        typer.echo(address(ports[0], token))
        try:
            # not a terminal of a person: nothing that is typed is shown, and so in no log of sessions
            said = opened.become(f"exec {command}", what=f"job notebook {name}")
            _typed(opened, token, said.decode(errors="replace"))
        finally:
            stop.set()
            opened.close(gently=False)
            carried.end()
    except AccountError as error:
        refuse(str(error))


def _typed(opened: PersonSession, token: str, said: str) -> None:
    """Type the token, and show what comes, until the notebook ends or somebody ends it."""
    opened.type(f"{token}\n")
    typed = clock.monotonic()
    lines = said.splitlines()
    with contextlib.suppress(SessionEndedError, KeyboardInterrupt):
        while True:
            for line in lines:
                remark(one_line(line))
            if clock.monotonic() - typed > ALIVE:  # a session in which nobody types is ended
                typed = clock.monotonic()
                opened.type("\n")
            lines = opened.hear(1.0)


def allocation(
    cluster: Cluster,
    *,
    nodes: int,
    gpus: int | None,
    time: str,
    team: str | None,
    group: str | None,
    name: str,
    run: Sequence[str] = (),
) -> str:
    """The command that allocates nodes and opens a shell on the first, or runs a command there.

    Raises:
        ValueError: there can be none.
    """
    pool = job_pool(cluster, group)
    check_team(cluster, team)
    check_job(cluster, pool, nodes, team)
    if not _TIME.fullmatch(time):
        raise ValueError(f"--time {time!r} has another form than 2:00:00")
    of_gpus = pool.resource == "nvidia.com/gpu"
    if gpus is not None and not of_gpus:
        raise ValueError(f"--gpus: nodes of {pool.instance_type.name} have none; leave it out")
    if gpus is not None and gpus > pool.per_node:
        raise ValueError(f"--gpus {gpus}: a node of {pool.instance_type.name} has {pool.per_node}")
    whole = gpus is None
    options = {
        "job-name": name, "account": team, "qos": "normal" if team else None,
        "partition": pool.settings.partition, "nodes": str(nodes), "ntasks-per-node": "1",
        "gpus-per-node": str(pool.per_node if gpus is None else gpus) if of_gpus and gpus != 0 else None,
        "exclusive": "" if whole else None, "time": time,
    }  # fmt: skip
    words = ["salloc"]
    words += [
        f"--{key}={value}" if value else f"--{key}" for key, value in options.items() if value is not None
    ]
    # a step that takes nothing from those that are started in it
    words += run or ["srun", "--interactive", "--preserve-env", "--pty", "bash", "--login"]
    return shlex.join(words)


def within_job(job_id: str) -> str:
    """The command that opens a shell on the first node of a job.

    Raises:
        NoSuchJobError: that is no number of one.
    """
    words = ["srun", f"--jobid={checked(job_id)}", "--overlap", "--nodes=1", "--ntasks=1", "--relative=0"]
    return shlex.join([*words, "--pty", "bash", "--login"])


def _ports(text: str) -> tuple[int, int]:
    """Here, and there."""
    found = _PORT.fullmatch(text)
    local, there = (int(found[1] or found[2]), int(found[2])) if found else (0, 0)
    if not (1 <= local <= 65535 and 1 <= there <= 65535):
        refuse(f"--forward {one_line(text)}: a port is a number up to 65535; LOCAL:PORT for another one here")
    return local, there


def _run(session: Session, who: str, command: str, name: str, ports: tuple[int, int] | None) -> None:
    stop, carried = Event(), None
    if ports:
        carried = _Carried(session, who, name, ports, stop)
        carried.begin()
    opened = PersonSession(session.command, user=who)
    size = shutil.get_terminal_size()
    try:
        with working("opening a session"):
            said = opened.become(f"exec {command}", what=f"job shell {name}", size=(size.lines, size.columns))
        hand_over()
        with LINE.held(), _raw():
            _relay(opened, said)
    finally:
        stop.set()
        opened.close(gently=False)
        if carried:
            carried.end()


class _Carried:
    """A port, carried beside the shell by a session of its own."""

    def __init__(self, session: Session, who: str, name: str, ports: tuple[int, int], stop: Event) -> None:
        self._session = PersonSession(session.command, user=who)
        self._name, self._ports, self._stop = name, ports, stop
        self._forward = Forward(self._session, secrets.token_hex(8), ports[0])
        self._thread = Thread(target=self._carry, daemon=True)

    def begin(self) -> None:
        """Listen; exit code 2 where the port is taken."""
        try:
            self._listener = self._forward.listen()
        except OSError as error:
            refuse(
                f"port {self._ports[0]} of this machine: {error.strerror}; --forward OTHER:{self._ports[1]}"
            )
        self._thread.start()

    def end(self) -> None:
        self._thread.join(5)
        self._listener.close()
        self._session.close(gently=False)

    def _carry(self) -> None:
        def ready() -> None:
            here, there = self._ports
            if not quiet():
                _tell(f"http://127.0.0.1:{here} is port {there} of the first node's 127.0.0.1.")

        queue, end = SlurmQueue(self._session, ""), clock.monotonic() + SLURM_WAITS
        try:
            while not self._stop.wait(2.0) and clock.monotonic() < end:
                mine = [job for job in queue.jobs() if self._name in (job.name, job.id)]
                if any(job.over for job in mine):
                    return
                if found := next((job for job in mine if job.state == "running"), None):
                    command = node_command(found.id, self._ports[1], self._forward.key)
                    self._session.become(command, what=f"job forward {found.id}")
                    self._forward.run(self._listener, self._stop, ready)
                    return
        except AccountError as error:
            if not self._stop.is_set():
                _tell(f"The port is not carried any more: {error}")


def _tell(text: str) -> None:
    """A line between what the shell prints, while the terminal is raw."""
    os.write(2, f"\r\n{one_line(text)}\r\n".encode())


@contextmanager
def _raw() -> Generator[None]:
    """The terminal as it is typed into."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _relay(session: PersonSession, said: bytes) -> None:
    """Between this terminal and that one, byte by byte, until the shell ends."""
    terminal = session.terminal
    resize = _resizer(terminal)
    resize()
    before = signal.signal(signal.SIGWINCH, resize)
    try:
        _write(1, said)
        while True:
            ready = select.select([0, terminal], [], [])[0]
            if terminal in ready:
                try:
                    data = os.read(terminal, 65536)
                except BlockingIOError:
                    continue
                except OSError:
                    return
                if not data:
                    return
                _write(1, data)
            if 0 in ready:
                typed = os.read(0, 1024)
                if not typed:
                    return
                _write(terminal, typed)
    finally:
        signal.signal(signal.SIGWINCH, before)


def _resizer(terminal: int) -> Callable[..., None]:
    """What tells the plugin's terminal how large ours is."""

    def resize(*_: object) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))

    return resize


def _write(where: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(where, data) :]
        except BlockingIOError:
            select.select([], [where], [], 1.0)


__all__ = ["allocation", "shell"]

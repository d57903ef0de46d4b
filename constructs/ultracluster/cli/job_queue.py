"""`ultracluster job submit|list|logs|cancel`: a person's jobs, from a laptop."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.account.aws import AccountError
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    confirm,
    load_environment,
    refuse,
)
from ultracluster.cli.job_options import (
    CheckpointsOption,
    CheckpointsToOption,
    GroupOption,
    ImageOption,
    LogLineOption,
    LogSecondsOption,
    LookOption,
    MostNodesOption,
    NameOption,
    PriorityOption,
    ProcessesOption,
    ResilienceOption,
    SchedulerOption,
    ScriptOption,
    SizesOption,
    SparesOption,
    StepOption,
    TeamOption,
    TimeOption,
    WithinOption,
    WorkdirLimitOption,
    WorkdirOption,
)
from ultracluster.cli.job_submission import (
    check_options,
    check_text,
    packed,
    read_job,
    submission_of,
    tell_plan,
    travelling,
)
from ultracluster.cli.job_text import wishes_of, written
from ultracluster.cli.job_watch import Lines, Watch, elapsed, summary
from ultracluster.cli.job_watch import follow as following
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.report import text_table
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.queue import open_queue
from ultracluster.jobs.queue.protocol import (
    PROGRAM,
    NoSuchJobError,
    NotSubmittedError,
    Program,
    Queue,
    QueuedJob,
    Submission,
    UnansweredError,
)
from ultracluster.jobs.workdir.bucket import Workdir, upload
from ultracluster.model import Cluster, resolve

Again = Callable[..., str]

ASKING = "asking the scheduler"
INTERRUPTED = 130
UNKNOWN = 3

AsOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="USER",
        help="As this user of the environment, on Slurm; by default whoever's principal you are.",
        show_default=False,
    ),
]  # fmt: skip
JobArgument = Annotated[
    str, typer.Argument(help="Its number on Slurm; NAMESPACE/NAME on Kubernetes.", show_default=False)
]


def submit(
    context: typer.Context,
    environment: EnvironmentArgument,
    rest: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|-] [-- ARGUMENTS...]",
            help="A batch script, or manifests; - is standard input. Without it, --nodes. Then the program's "
            "arguments.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, help="Instead of a file: a PyTorch job of so many nodes.", show_default=False),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(
            help="A small file from here that travels with the job, in the place of --script.",
            show_default=False,
        ),
    ] = None,
    workdir: WorkdirOption = None,
    workdir_limit: WorkdirLimitOption = 200,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the job and its log to the end.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent; nothing is asked or changed.")
    ] = False,
    user: AsOption = "",
    team: TeamOption = None,
    image: ImageOption = None,
    script: ScriptOption = None,
    name: NameOption = "train",
    group: GroupOption = None,
    priority: PriorityOption = "normal",
    within: WithinOption = None,
    processes: ProcessesOption = None,
    time: TimeOption = None,
    checkpoints: CheckpointsOption = None,
    look: LookOption = True,
    scheduler: SchedulerOption = None,
    resilience: ResilienceOption = None,
    spares: SparesOption = 0,
    most_nodes: MostNodesOption = None,
    step: StepOption = 1,
    sizes: SizesOption = None,
    log_line: LogLineOption = None,
    log_seconds: LogSecondsOption = 600,
    checkpoints_to: CheckpointsToOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job as yourself: a file, or with --nodes what `job write` prints.

    Exit code 0 = submitted, with --watch: it ended well, 1 = with --watch: it failed or was cancelled, 2 =
    refused, nothing was submitted, 3 = no answer: it may have been submitted, 130 = interrupted.
    """
    words = list(rest or [])
    if nodes is None:
        cluster, text, called, travels = _of_file(context, environment, words, program)
    else:
        cluster, text, travels = _of_options(context, environment, words, program, script)
        called = name
    folder = packed(cluster, workdir, workdir_limit) if workdir else None
    submission = submission_of(cluster, text, called, travels, folder, group)
    if dry_run:
        tell_plan(cluster, submission, user, team, as_json=as_json)
        return
    again = _again(environment, profile, user)
    with _queue(cluster, profile, user, team, folder) as queue:
        job = _submit(queue, submission, again)
        if not (as_json and watch):
            _tell(job, queue, cluster.name, again, as_json=as_json)
        if not watch:
            return
        job = _watch(queue, job, again, quiet=as_json)
    if as_json:
        write_json("job", {"environment": cluster.name, "job": job})
    raise typer.Exit(0 if job.state == "completed" else 1)


def _of_file(
    context: typer.Context, environment: Path, words: list[str], program: Path | None
) -> tuple[Cluster, str, str, Program | None]:
    """Cluster, text and name of the job in a file, and the program that travels with it."""
    cluster = resolve(load_environment(environment))
    if not words:
        refuse("what is to run? A file (a batch script, manifests, or - for standard input), or --nodes")
    file, *arguments = words
    check_options(context, file)
    text, called = read_job(file)
    travels = travelling(program, arguments)
    if travels and PROGRAM not in text and arguments:
        refuse(f"{file} does not say where the program is named: write {PROGRAM} there")
    check_text(cluster, file, text)
    return cluster, text, called, travels


def _of_options(
    context: typer.Context, environment: Path, words: list[str], program: Path | None, script: str | None
) -> tuple[Cluster, str, Program | None]:
    """Cluster and text of the job that the options describe, and the program that travels with it."""
    if words and program is None and (words[0] == "-" or Path(words[0]).is_file()):
        nodes = context.params["nodes"]
        refuse(f"--nodes {nodes} makes a job, and {words[0]} is one: leave one of the two out")
    travels = travelling(program, words)
    if travels and script:
        refuse("--program and --script exclude each other: one travels with the job, one lies there already")
    cluster, text = written(
        environment,
        wishes_of(context),
        program=travels.name if travels else "",
        workdir=context.params["workdir"] is not None,
    )
    return cluster, text, travels


def list_jobs(
    environment: EnvironmentArgument,
    everyone: Annotated[bool, typer.Option("--all", help="Those of everybody.")] = False,
    team: Annotated[str | None, typer.Option(help="Of this team only.", show_default=False)] = None,
    user: AsOption = "",
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List your jobs: pending, running, or ended lately. Exit code 2 if the scheduler cannot be asked."""
    cluster = resolve(load_environment(environment))
    with _queue(cluster, profile, user, team) as queue:
        with working(ASKING):
            found = queue.jobs(everyone=everyone or team is not None)
        jobs = [job for job in found if team in (None, job.team)]
    if as_json:
        write_json("jobs", {"environment": cluster.name, "jobs": jobs})
        return
    if not jobs:
        typer.echo("No jobs." if everyone or team else "No jobs of yours; --all shows those of everybody.")
        return
    rows = [
        [
            job.id, job.name, job.user, job.team, job.state, str(len(job.nodes) or job.wanted_nodes or ""),
            elapsed(job.started or job.submitted, job.ended), job.why,
        ]
        for job in jobs
    ]  # fmt: skip
    typer.echo(text_table(["job", "name", "user", "team", "state", "nodes", "time", "why"], rows))


def logs(
    environment: EnvironmentArgument,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the job is over.")] = False,
    lines: Annotated[
        int | None, typer.Option(min=1, help="Begin so many lines before the end.", show_default=False)
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            help="Node or rank whose log it is, on Kubernetes; the first by default.", show_default=False
        ),
    ] = "",
    user: AsOption = "",
    profile: ProfileOption = None,
) -> None:
    """Print what a job printed.

    Exit code 1 = there is no such job, 2 = it cannot be asked, 130 = interrupted. How the job ended does not
    count.
    """
    cluster = resolve(load_environment(environment))
    with _queue(cluster, profile, user) as queue:
        try:
            with working(ASKING):
                found = queue.job(job)
            if follow:
                with Watch() as watch:
                    following(queue, found, watch, lines=lines, part=part)
                return
            text, after = Lines(), ""
            while True:
                with working("reading the log"):
                    piece = queue.log(found.id, after, lines=None if after else lines, part=part)
                for line in text.of(piece.data, last=not piece.more):
                    typer.echo(line)
                if piece.note:
                    remark(one_line(piece.note))
                after = piece.cursor
                if not piece.more:
                    return
        except NoSuchJobError as error:
            refuse(str(error), code=1)
        except AccountError as error:
            refuse(str(error))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def cancel(
    environment: EnvironmentArgument,
    jobs: Annotated[
        list[str], typer.Argument(metavar="JOB...", help="As `job list` names them.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Without a question.")] = False,
    user: AsOption = "",
    profile: ProfileOption = None,
) -> None:
    """End jobs, after a question that shows them.

    Exit code 1 = there is no such job, or one could not be ended, 2 = refused, nothing was asked for.
    """
    cluster = resolve(load_environment(environment))
    wanted = list(dict.fromkeys(jobs))
    with _queue(cluster, profile, user) as queue:
        try:
            with working(ASKING):
                found = [queue.job(one) for one in wanted]
        except NoSuchJobError as error:
            refuse(f"{error}: nothing was ended", code=1)
        except AccountError as error:
            refuse(str(error))
        over = [job for job in found if job.over]
        going = [job for job in found if not job.over]
        asks = going and not yes
        for job in found:
            line = one_line(f"{summary(job, '')}{f', of {job.user}' if job.user else ''}")
            typer.echo(line, err=True) if asks else remark(line)  # a question is nothing without it
        if not going:
            remark("Nothing to end.")
            return
        confirm(f"End {len(going)} job{'s' if len(going) > 1 else ''}?", yes)
        try:
            with working("asking for their end"):
                answers = queue.cancel([job.id for job in going])
        except AccountError as error:
            refuse(
                f"{error}: they may have been ended; `{_again(environment, profile, user)('list')}` tells",
                code=UNKNOWN,
            )
    failed = {job_id: why for job_id, why in answers.items() if why}
    for job in going:
        typer.echo(f"{job.id}: {one_line(failed[job.id]) if job.id in failed else 'asked to end'}")
    for job in over:
        typer.echo(f"{job.id}: is over already ({job.state})")
    if failed:
        raise typer.Exit(1)


# ---- what the commands share


@contextmanager
def _queue(
    cluster: Cluster, profile: str | None, user: str, team: str | None = None, workdir: Workdir | None = None
) -> Generator[Queue]:
    if user and cluster.traits.kubernetes:
        refuse(f"--as is for Slurm, and this is {cluster.settings.kind}: your IAM role is who you are")
    account = open_account(cluster.environment, profile)
    try:
        if workdir:
            with working("storing the folder"):
                stored = upload(account, workdir)
            remark("workdir: stored" if stored else "workdir: is there already, and was not stored again")
        with open_queue(account, cluster, user=user, team=team, say=_say) as queue:
            yield queue
    except AccountError as error:
        refuse(str(error))


def _say(line: str) -> None:
    remark(one_line(line))


def _again(environment: Path, profile: str | None, user: str) -> Again:
    """Another command on jobs, as the same person in the same account."""
    account = [*(("--as", user) if user else ()), *(("--profile", profile) if profile else ())]

    def command(verb: str, *words: str) -> str:
        return shlex.join(["ultracluster", "job", verb, str(environment), *words, *account])

    return command


def _submit(queue: Queue, submission: Submission, again: Again) -> QueuedJob:
    try:
        with working(f"submitting {one_line(submission.name)}"):
            return queue.submit(submission)
    except NotSubmittedError as error:
        refuse(f"Not submitted: {error}")
    except UnansweredError as error:
        refuse(
            f"Not known whether it was submitted: {error}. `{again('list')}` shows "
            f"{one_line(submission.name)}, if it was; do not submit it again before",
            code=UNKNOWN,
        )
    except AccountError as error:
        refuse(f"Not submitted: {error}")
    except KeyboardInterrupt:
        refuse(
            f"Interrupted: it may have been submitted. `{again('list')}` shows {submission.name}, if it was",
            code=INTERRUPTED,
        )


def _watch(queue: Queue, job: QueuedJob, again: Again, *, quiet: bool) -> QueuedJob:
    goes_on = f"Job {job.id} goes on: `{again('logs', job.id, '--follow')}`, `{again('cancel', job.id)}`"
    try:
        with Watch(quiet=quiet) as watch:
            return following(queue, job, watch)
    except KeyboardInterrupt:
        refuse(f"Stopped watching. {goes_on}.", code=INTERRUPTED)
    except (AccountError, NoSuchJobError) as error:
        refuse(f"It cannot be watched any more: {error}. {goes_on}.", code=UNKNOWN)


def _tell(job: QueuedJob, queue: Queue, environment: str, again: Again, *, as_json: bool) -> None:
    if as_json:
        write_json("job", {"environment": environment, "job": job})
        return
    for note in job.notes:
        remark(one_line(note))
    typer.echo(job.id)
    remark(
        one_line(
            f"Submitted job {job.id} ({job.name}) on {queue.place}; "
            f"`{again('logs', job.id, '--follow')}` shows what it prints."
        )
    )


__all__ = ["cancel", "list_jobs", "logs", "submit"]

"""What `ultracluster job submit` sends: read and checked on this machine, and shown without being sent."""

from __future__ import annotations

import errno
import re
import secrets
import sys
from dataclasses import fields
from pathlib import Path

import typer

from ultracluster.account.aws import AccountError
from ultracluster.cli.job_options import typed_options
from ultracluster.cli.json_output import write_json
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark
from ultracluster.config.file_text import bytes_of
from ultracluster.config.plain_text import one_line, visible
from ultracluster.jobs.manifests.job_documents import job_documents
from ultracluster.jobs.manifests.job_shape import shape_faults
from ultracluster.jobs.queue.person import planned
from ultracluster.jobs.queue.protocol import PROGRAM_LIMIT, TEXT_LIMIT, Program, Submission
from ultracluster.jobs.request import Wishes
from ultracluster.jobs.scripts.script_notes import script_notes
from ultracluster.jobs.workdir.bucket import Workdir, pack
from ultracluster.jobs.workdir.in_script import with_workdir
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster

_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ARGUMENT = re.compile(r"[A-Za-z0-9@%+=:,./_-]{1,1000}")
_JOB_NAME = re.compile(r"^#SBATCH\s+(?:--job-name[= ]|-J\s*)[\"']?([A-Za-z0-9._-]+)", re.MULTILINE)


def check_options(context: typer.Context, file: str) -> None:
    """Refuse options that shape a job which --nodes makes: a file says these things itself."""
    shaping = {field.name for field in fields(Wishes)} - {"nodes", "team"}
    given = [option for name, option in typed_options(context).items() if name in shaping]
    if given:
        refuse(
            f"{', '.join(given)}: for a job that --nodes makes; {file} says it itself, or leave {file} out"
        )


def read_job(file: str) -> tuple[str, str]:
    """Text of a job, and what it is called."""
    place = "standard input" if file == "-" else file
    try:
        if file == "-":
            data = sys.stdin.buffer.read(TEXT_LIMIT + 1)
            if len(data) > TEXT_LIMIT:
                raise OSError(errno.EFBIG, "")
        else:
            data = bytes_of(Path(file), TEXT_LIMIT)
        text = data.decode()
    except OSError as error:
        too_large = f"is larger than {TEXT_LIMIT // 1024} KiB, which no job's text is"
        refuse(f"{place}: {too_large if error.errno == errno.EFBIG else error.strerror}")
    except UnicodeDecodeError:
        refuse(f"{place}: is not text (UTF-8)")
    if not text.strip():
        refuse(f"{place}: is empty")
    named = _JOB_NAME.search(text)
    return text, named[1] if named else ("job" if file == "-" else Path(file).stem)


def check_text(cluster: Cluster, file: str, text: str) -> None:
    """Refuse what the scheduler cannot mean, and say what the cluster has otherwise."""
    if cluster.traits.kubernetes:
        place = "standard input" if file == "-" else file
        if faults := shape_faults(text):
            refuse("\n".join(one_line(f"{place}:{one.line}: {one}") for one in faults))
        return
    if not text.startswith("#!"):
        refuse(f"{file}: a batch script of Slurm begins with `#!/bin/bash`")
    if "\0" in text or "\r\n" in text:
        refuse(f"{file}: has line ends of Windows, or zero bytes, and Slurm takes neither: `dos2unix {file}`")
    for note in script_notes(cluster, text):
        remark(one_line(f"note: {note}"))


def travelling(path: Path | None, arguments: list[str]) -> Program | None:
    """The program that travels, as it is on this machine."""
    if path is None:
        if arguments:
            refuse(f"{' '.join(arguments)[:100]!r}: arguments are for a program, and there is no --program")
        return None
    if not _PROGRAM.fullmatch(path.name):
        refuse(f"--program {path}: call the file by letters, digits, dots, - and _")
    for one in arguments:
        if not _ARGUMENT.fullmatch(one):
            refuse(
                f"{one[:100]!r}: an argument of the program may have letters, digits and @%+=:,./_- only, "
                "because shells read it on its way; put others into the program, or into a file"
            )
    try:
        content = bytes_of(path, PROGRAM_LIMIT)
    except OSError as error:
        too_large = (
            f"is larger than {PROGRAM_LIMIT // 1024} KiB; put it on the shared file system, and name it with "
            "--script"
        )
        refuse(f"--program {path}: {too_large if error.errno == errno.EFBIG else error.strerror}")
    return Program(path.name, content, tuple(arguments))


def packed(cluster: Cluster, path: Path, limit_mb: int) -> Workdir:
    """The folder that travels, as it is on this machine; its size is shown."""

    try:
        workdir = pack(cluster, path, limit_mb=limit_mb)
    except ValueError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"--workdir {path}: its archive cannot be written here ({error.strerror})")
    remark(one_line(f"workdir: {path}, {workdir}"))
    return workdir


def submission_of(
    cluster: Cluster,
    text: str,
    name: str,
    program: Program | None,
    workdir: Workdir | None = None,
    group: str | None = None,
) -> Submission:

    if workdir and not cluster.traits.kubernetes:
        try:
            text = with_workdir(cluster, text, workdir, group=group)
        except ValueError as error:
            refuse(str(error))
    return Submission(text=text, name=name, token=secrets.token_hex(4), program=program, workdir=workdir)


def tell_plan(
    cluster: Cluster, submission: Submission, user: str, team: str | None, *, as_json: bool
) -> None:
    """What would be sent, and where to."""
    text = submission.text
    if cluster.traits.kubernetes:
        where, text = _kubernetes_plan(cluster, submission, team)
    else:
        try:
            who, document = planned(cluster.environment, user)
        except AccountError as error:
            refuse(str(error))
        where = f"to sbatch where people log in to {cluster.cluster_name}, in a session as {who} ({document})"
    program = submission.program
    if as_json:
        write_json(
            "job-plan",
            {
                "environment": cluster.name, "where": where, "name": submission.name, "text": text,
                "program": program.name if program else None,
                "program_bytes": len(program.content) if program else None,
                "arguments": list(program.arguments) if program else [],
            },
        )  # fmt: skip
        return
    typer.echo(visible(text), nl=not text.endswith("\n"))  # before echo, which drops colours off a terminal
    remark(f"Nothing was submitted. This would be sent {where}.")
    if program:
        words = " ".join([program.name, *program.arguments])
        remark(f"With it travels {program.name} ({len(program.content):,} bytes), started as: {words}")


def _kubernetes_plan(cluster: Cluster, submission: Submission, team: str | None) -> tuple[str, str]:
    """Where the objects would go, and they, as they would be sent."""
    program, workdir = submission.program, submission.workdir
    try:
        made = job_documents(
            cluster,
            submission.text,
            team=team,
            token=submission.token,
            program=(program.name, program.content) if program else None,
            arguments=program.arguments if program else (),
            workdir=(workdir.place, workdir.digest) if workdir else None,
        )
    except ValueError as error:
        refuse(f"It would not be submitted: {error}")
    for note in made.notes:
        remark(one_line(note))
    where = f"to the Kubernetes API of {cluster.cluster_name}, namespace {made.namespace}"
    return where, "---\n".join(yaml_text(one) for one in made.all)


__all__ = ["check_options", "check_text", "packed", "read_job", "submission_of", "tell_plan", "travelling"]

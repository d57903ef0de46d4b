"""Jobs of Slurm, asked for in a person's session: `sbatch`, `squeue`, `scontrol`, `sacct` and `scancel`.

Each submission has a folder of its own in the person's home, whose name holds its token. Whoever makes the
folder may submit, so nothing is submitted twice; and the job is found again by the path of its script, which
slurmctld keeps, where no answer came.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from ultracluster.account.aws import AccountError
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.placement.spread import node_names
from ultracluster.jobs.queue.person_session import PersonSession, Said, SessionEndedError
from ultracluster.jobs.queue.protocol import (
    PROGRAM,
    LogPart,
    NoSuchJobError,
    NotSubmittedError,
    QueuedJob,
    State,
    Submission,
    UnansweredError,
)
from ultracluster.jobs.queue.slurm_accounting import read_records
from ultracluster.model import Cluster
from ultracluster.plan.usage import Records

FOLDER = "ultracluster-jobs"
"""In a person's home: a folder for each job."""
PART = 262_144
"""Bytes of a log in one answer."""
JOB_ID = re.compile(r"[1-9]\d{0,9}([_+]\d{1,9})?")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_STATES: dict[str, State] = {
    "PENDING": "waiting", "SUSPENDED": "waiting", "RUNNING": "running", "COMPLETED": "completed",
    "CANCELLED": "cancelled", "REVOKED": "cancelled", "FAILED": "failed", "TIMEOUT": "failed",
    "NODE_FAIL": "failed", "PREEMPTED": "failed", "BOOT_FAIL": "failed", "DEADLINE": "failed",
    "OUT_OF_MEMORY": "failed",
}  # fmt: skip
"""squeue manual, "JOB STATE CODES"; the others are flags beside one of these."""
_FLAGS = ("CONFIGURING", "COMPLETING", "REQUEUED", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT")
_MAYBE = re.compile(r"timed out|timeout|unable to contact|connection|communication", re.IGNORECASE)
"""What sbatch says where slurmctld may have the job all the same."""

_BEGIN = r"""
d=@folder@
[[ $HOME =~ ^/[A-Za-z0-9/._-]+$ ]] || { echo "the home '$HOME' cannot be named in a script" >&2; exit 90; }
mkdir -p -m 700 "$HOME/@parent@" && cd "$HOME/@parent@" || exit 91
"""
_SUBMIT = (
    _BEGIN
    + r"""
mkdir -m 700 "$d" || exit 92
exec 8>>"$d/.lock"
flock -n 8 || [ $? -ne 1 ] || exit 92
[ ! -e "$d/.never" ] || exit 92
{ @files@; } || { rm -rf "$d"; echo "$HOME takes no files" >&2; exit 93; }
cd "$d" && : >.begun || exit 93
timeout -k 5 @seconds@ sbatch --parsable "$HOME/@parent@/$d/@script@" >.job.new 2>.said
status=$?
mv .job.new .job
cat .said >&2
cat .job
exit "$status"
"""
)
_FIND = (
    _BEGIN
    + r"""
if mkdir -m 700 "$d" 2>/dev/null; then : >"$d/.never"; echo never; exit 0; fi
exec 8>>"$d/.lock"
flock -w @seconds@ 8 || { [ $? -ne 1 ] || { echo busy; exit 0; }; }
if [ ! -e "$d/.begun" ]; then : >"$d/.never"; echo never; exit 0; fi
echo begun "$HOME/@parent@/$d/@script@"
cat "$d/.job" 2>/dev/null | head -n 1
"""
)
_LOG = r"""
p=@path@ after=@after@ lines=@lines@
[[ -e $p ]] || { echo "absent 0 0"; exit 0; }
[[ -f $p && -r $p ]] || { echo "closed 0 0"; exit 0; }
if [[ -n $lines ]]; then
  tailed=$(timeout 30 tail -n "$lines" -- "$p" | wc -c)
  size=$(stat -L -c %s -- "$p")
  after=$((size > tailed ? size - tailed : 0))
else
  size=$(stat -L -c %s -- "$p")
fi
((size >= after)) || after=0
echo "there $after $size"
tail -c "+$((after + 1))" -- "$p" | head -c @part@
"""
_ADDRESSES = r"""
list=$(timeout 30 squeue --noheader --states=running --format=%N --jobs=@job@) || exit
[[ -n $list ]] || exit 0
timeout 30 scontrol --oneliner show node "${list//$'\n'/,}" | sed -n 's/.* NodeAddr=\([^ ]*\) .*/\1/p'
"""
SUBMIT_SECONDS = 60


class SlurmQueue:
    """The jobs of a Slurm cluster, as the person whose session it is."""

    def __init__(self, session: PersonSession, node: str) -> None:
        """Nothing is asked yet.

        Args:
            session: of the person, on a node that has Slurm's commands.
            node: what that node is called.
        """
        self._session, self._node = session, node
        self._logs: dict[str, str] = {}

    @property
    def place(self) -> str:
        return f"{self._node} as {self._session.who or 'the user of sessions'}"

    def submit(self, submission: Submission) -> QueuedJob:
        self._session.open()  # from here on a session that ends may have submitted
        try:
            said = self._session.run(
                submit_script(submission), what=f"job submit {submission.name}", seconds=SUBMIT_SECONDS + 20,
                again=False,
            )  # fmt: skip
        except SessionEndedError as error:
            return self._find(submission, f"the session ended before an answer came ({error})")
        found = _id_of(said.text)
        if said.status == 0 and found:
            return self._submitted(found, submission)
        why = one_line(said.errors.strip()) or f"sbatch ended with {said.status}"
        if said.status in (90, 91, 93):
            raise NotSubmittedError(why)
        if said.status in (92, 124, 137) or said.status == 0 or _MAYBE.search(why):
            return self._find(submission, f"sbatch got no answer ({why})")
        raise NotSubmittedError(why)

    def _find(self, submission: Submission, why: str) -> QueuedJob:
        """The job of a submission that nobody answered, or what is known of it."""
        try:
            said = self._session.run(find_script(submission), what="job find", seconds=SUBMIT_SECONDS + 30)
            if said.status != 0:
                raise UnansweredError(f"{why}, and {_end_of(said)}")
            first, _, rest = said.text.partition("\n")
            if first == "never":
                raise NotSubmittedError(f"{why}: it was not submitted, and will not be. Submit it again")
            if first.startswith("begun ") and (found := _id_of(rest)):
                return self._submitted(found, submission)
            path = first.removeprefix("begun ")
            rows = self._squeue(everyone=False)
        except AccountError as error:
            raise UnansweredError(f"{why}, and it could not be looked for ({error})") from None
        for row in rows:
            if first.startswith("begun ") and row.get("command") == path:
                return queued(row)
        raise UnansweredError(f"{why}, and Slurm does not have it (yet)")

    def _submitted(self, job_id: str, submission: Submission) -> QueuedJob:
        try:
            return self.job(job_id)
        except (AccountError, NoSuchJobError):  # it is there, whatever can be asked of it now
            return QueuedJob(
                id=job_id, name=submission.name, user=self._session.who, team="", state="unknown"
            )

    def jobs(self, *, everyone: bool = False) -> Sequence[QueuedJob]:
        found = [queued(row) for row in self._squeue(everyone=everyone)]
        return sorted(found, key=lambda job: (job.submitted or datetime.min.replace(tzinfo=UTC), job.id))

    def _squeue(self, *, everyone: bool) -> list[dict[str, Any]]:
        mine = "" if everyone else " --me"
        said = self._session.run(f"timeout 50 squeue --json --states=all{mine}", what="job list")
        if said.status != 0:
            raise AccountError(f"squeue on {self._node}: {_end_of(said)}")
        return _rows(said.out, "squeue")

    def job(self, job_id: str) -> QueuedJob:
        job_id = checked(job_id)
        said = self._session.run(f"timeout 40 scontrol --json show job {job_id}", what=f"job look {job_id}")
        rows = _rows(said.out, "scontrol") if said.status == 0 else []
        if not rows:
            rows = self._accounted(job_id, said)
        made = [queued(row) for row in rows]
        found = next((one for one in made if one.id == job_id), made[0])
        if found.log:
            self._logs[job_id] = found.log
        return found

    def addresses(self, job_id: str) -> Sequence[str]:
        """Address or host name of each node that a job has, the first one first; nothing unless it runs."""
        script = _ADDRESSES.replace("@job@", checked(job_id))
        said = self._session.run(script, what=f"job nodes {job_id}")
        if said.status != 0:
            raise AccountError(f"squeue on {self._node}: {_end_of(said)}")
        return said.text.split()

    def _accounted(self, job_id: str, before: Said) -> list[dict[str, Any]]:
        """Return what the accounting database has of a job that slurmctld has forgotten."""
        if "Invalid job id" not in before.errors + before.text and before.status != 0:
            raise AccountError(f"scontrol on {self._node}: {_end_of(before)}")
        said = self._session.run(f"timeout 40 sacct --json --jobs={job_id}", what=f"job look {job_id}")
        rows = _rows(said.out, "sacct") if said.status == 0 else []
        if rows:
            return [_from_accounting(row) for row in rows]
        more = "" if said.status == 0 else f", and there is no accounting to ask ({_end_of(said)})"
        raise NoSuchJobError(f"Slurm knows no job {job_id} (any more){more}")

    def log(self, job_id: str, after: str = "", *, lines: int | None = None, part: str = "") -> LogPart:
        job_id = checked(job_id)
        if part:
            raise AccountError("a job of Slurm has one log, of all nodes: leave --part out")
        if job_id not in self._logs:
            self.job(job_id)
        path = self._logs.get(job_id, "")
        if not path.startswith("/"):
            return LogPart(b"", after, note="Slurm does not tell where its output is")
        script = log_script(path, int(after or 0), lines)
        said = self._session.run(script, what=f"job logs {job_id}")
        head, _, data = said.out.partition(b"\n")
        words = head.decode(errors="replace").split()
        if said.status not in (0, 141) or len(words) != 3 or not words[1].isdigit():
            raise AccountError(f"{path} cannot be read on {self._node}: {_end_of(said)}")
        if words[0] == "absent":
            return LogPart(b"", after, note=f"{path} is not there (yet)")
        if words[0] == "closed":
            return LogPart(b"", after, note=f"{path} is no file that {self._session.who or 'you'} may read")
        begin = int(words[1])
        note = "it begins again: the file is shorter than before" if after and begin < int(after) else ""
        return LogPart(data, str(begin + len(data)), begin + len(data) < int(words[2]), note)

    def cancel(self, ids: Sequence[str]) -> Mapping[str, str]:
        wanted = [checked(identifier) for identifier in ids]
        words = " ".join(wanted)
        said = self._session.run(
            f'for j in {words}; do e=$(timeout 20 scancel "$j" 2>&1); s=$?; '
            "printf '%s %s %s\\n' \"$j\" \"$s\" \"$(printf %s \"$e\" | tr '\\n\\r' '  ')\"; done",
            what=f"job cancel {words}"[:90], seconds=30 + 20 * len(wanted),
        )  # fmt: skip
        answers: dict[str, str] = {}
        for line in said.text.splitlines():
            job_id, _, rest = line.partition(" ")
            status, _, why = rest.partition(" ")
            answers[job_id] = one_line(why.strip()) if status != "0" or "error" in why else ""
        return {one: answers.get(one, "no answer") for one in wanted}

    def records(self, cluster: Cluster, since: datetime, until: datetime) -> Records:
        return read_records(self._session, self._node, cluster, since, until)

    def close(self) -> None:
        self._session.close()


def checked(job_id: str) -> str:
    """A number of Slurm's.

    Raises:
        NoSuchJobError: it is none.
    """
    if not JOB_ID.fullmatch(job_id):
        raise NoSuchJobError(f"{one_line(job_id)!r} is no job of Slurm: a number, or 42_7 of an array")
    return job_id


def folder_name(submission: Submission) -> str:
    """Name of a submission's folder."""
    return f"{file_name(submission.name)}-{submission.token}"


def file_name(name: str) -> str:
    """A name without characters that a script would have to quote."""
    return _NOT_A_NAME.sub("-", name).strip("-.")[:60] or "job"


def script_name(submission: Submission) -> str:
    """Return what the batch script is called in its folder: a job without a name of its own is called so."""
    name, program = f"{file_name(submission.name)}.sh", submission.program
    return f"job-{name}" if program and program.name == name else name


def job_text(submission: Submission, folder: str) -> str:
    """The batch script with the program's path, and its arguments, where it is named."""
    program = submission.program
    if program is None:
        return submission.text
    return submission.text.replace(PROGRAM, " ".join([f"{folder}/{program.name}", *program.arguments]))


def submit_script(submission: Submission) -> str:
    """Return what makes the job's folder and submits it; ends with 92 where the folder is there already."""
    place = f"@folder-{submission.token}@"  # the person's home is known there only
    text = base64.b64encode(job_text(submission, place).encode()).decode()
    files = [f"t=$(printf %s {text} | base64 -d; echo .) && t=${{t%.}}"]
    files += [f'printf %s "${{t//{place}/$HOME/{FOLDER}/$d}}" >"$d/{script_name(submission)}"']
    if submission.program:
        content = base64.b64encode(submission.program.content).decode()
        file = shlex.quote(submission.program.name)
        files += [f'printf %s "{content}" | base64 -d >"$d"/{file}']
    return _filled(_SUBMIT, submission).replace("@files@", " && ".join(files))


def find_script(submission: Submission) -> str:
    """Return what finds out whether that has submitted; where it has not, it never will."""
    return _filled(_FIND, submission)


def _filled(script: str, submission: Submission) -> str:
    for key, value in (
        ("folder", folder_name(submission)),
        ("parent", FOLDER),
        ("script", script_name(submission)),
        ("seconds", str(SUBMIT_SECONDS)),
    ):
        script = script.replace(f"@{key}@", value)
    return script


def log_script(path: str, after: int, lines: int | None) -> str:
    """Return what prints a line about the file, and then a piece of it."""
    script = _LOG.replace("@after@", str(after)).replace("@part@", str(PART))
    script = script.replace("@lines@", "" if lines is None else str(lines))
    return script.replace("@path@", shlex.quote(path))


def queued(row: Mapping[str, Any]) -> QueuedJob:
    """A job of `squeue --json` or `scontrol --json show job` (Slurm REST API, `job_info`)."""
    words = _words(row.get("job_state"))
    base = next((word for word in words if word in _STATES), "")
    state: State = _STATES.get(base, "unknown")
    started, ended = _time(row.get("start_time")), _time(row.get("end_time"))
    nodes = _nodes(row.get("nodes"))
    reason = _text(row.get("state_reason"))
    return QueuedJob(
        id=_job_id(row),
        name=_text(row.get("name")),
        user=_text(row.get("user_name")),
        team=_text(row.get("account")),
        state=state,
        detail=" ".join(word for word in words if word in _STATES or word in _FLAGS) or " ".join(words),
        why="" if reason in ("None", "") else one_line(reason),
        nodes=nodes if state != "waiting" else (),
        wanted_nodes=_number(row.get("node_count")),
        submitted=_time(row.get("submit_time")),
        started=started if state != "waiting" else None,
        ended=ended if state in ("completed", "failed", "cancelled") else None,
        exit_code=_exit_code(row.get("exit_code")) if state in ("completed", "failed") else None,
        restarts=_number(row.get("restart_cnt")) or 0,
        log=_text(row.get("stdout_expanded")) or _expanded(row),
    )


def _from_accounting(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `sacct --json` as slurmctld would tell it."""
    times: Mapping[str, Any] = row.get("time") or {}
    state: Mapping[str, Any] = row.get("state") or {}
    array: Mapping[str, Any] = row.get("array") or {}
    return {
        **row,
        "job_state": state.get("current"), "state_reason": state.get("reason"),
        "user_name": row.get("user"), "node_count": row.get("allocation_nodes"),
        "start_time": times.get("start"), "end_time": times.get("end"),
        "submit_time": times.get("submission"),
        "array_job_id": array.get("job_id"), "array_task_id": array.get("task_id"),
        "standard_output": row.get("stdout"),
        "current_working_directory": row.get("working_directory"),
    }  # fmt: skip


def _job_id(row: Mapping[str, Any]) -> str:
    array, task = _number(row.get("array_job_id")), _number(row.get("array_task_id"))
    return f"{array}_{task}" if array and task is not None else str(_number(row.get("job_id")) or "")


def _expanded(row: Mapping[str, Any]) -> str:
    """Return where the output is, by its pattern (Slurm before 24.11) (sbatch manual, "filename pattern")."""
    pattern, folder = _text(row.get("standard_output")), _text(row.get("current_working_directory"))
    number = str(_number(row.get("job_id")) or "")
    array, task = _number(row.get("array_job_id")), _number(row.get("array_task_id"))
    if not pattern:
        pattern = "slurm-%A_%a.out" if task is not None else "slurm-%j.out"
    known = {
        "%": "%", "j": number, "J": number, "A": str(array or number), "a": str(task or 0),
        "x": _text(row.get("name")), "u": _text(row.get("user_name")), "n": "0", "t": "0", "s": "batch",
        "N": _text(row.get("batch_host")),
    }  # fmt: skip
    path = re.sub(r"%(.)", lambda found: known.get(found[1], found[0]), pattern)
    return path if path.startswith("/") else f"{folder}/{path}" if folder.startswith("/") else ""


def _rows(out: bytes, program: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(out)
        rows = document["jobs"]
        if not isinstance(rows, list):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise AccountError(
            f"`{program} --json` did not answer with jobs: Slurm needs its JSON serializer (24.05 or newer)"
        ) from None
    return [cast("dict[str, Any]", row) for row in cast("list[object]", rows) if isinstance(row, dict)]


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None or value == "(null)" else str(value)


def _number(value: object) -> int | None:
    """A number, or one with `set` beside it."""
    if isinstance(value, Mapping):
        held = cast("Mapping[str, object]", value)
        return _number(held.get("number")) if held.get("set") else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def _time(value: object) -> datetime | None:
    seconds = _number(value)
    if not seconds or not 0 < seconds < 32_503_680_000:  # the year 3000
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _nodes(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not value or value in ("(null)", "None assigned"):
        return ()
    try:
        return tuple(node_names(value))
    except ValueError:
        return (one_line(value),)


def _exit_code(value: object) -> int | None:
    if not isinstance(value, Mapping):
        return _number(value)
    held = cast("Mapping[str, object]", value)
    signal = held.get("signal")
    number = _number(cast("Mapping[str, object]", signal).get("id")) if isinstance(signal, Mapping) else None
    return 128 + number if number else _number(held.get("return_code"))


def _id_of(text: str) -> str:
    """Return what `sbatch --parsable` prints: a number, and perhaps the cluster's name behind it."""
    lines: Iterable[str] = (line.strip().partition(";")[0] for line in text.splitlines())
    return next((line for line in lines if JOB_ID.fullmatch(line)), "")


def _end_of(said: Said) -> str:
    return one_line((said.errors or said.text).strip())[-300:] or f"it ended with {said.status}"


__all__ = ["FOLDER", "SlurmQueue", "checked", "queued"]

# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""Manifests of a person, as they are submitted: read, held to what a job may bring, and made one submission.

A submission is one job with what belongs to it. It goes to the namespace of one team, names its queue, and
carries a mark by which it is found again.
"""

from __future__ import annotations

import base64
import difflib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ultracluster.config.plain_text import clipped, one_line
from ultracluster.config.yaml_bounds import (
    MOST_LEVELS,
    MOST_VALUES,
    TooDeepError,
    TooMuchError,
    directive_line,
    load_documents,
)
from ultracluster.jobs.manifests.job_kinds import COMPANIONS, KINDS, RAY_CLUSTER, JobKind, kind_of
from ultracluster.jobs.manifests.job_notes import job_notes
from ultracluster.jobs.workdir.in_pods import put_workdir
from ultracluster.kubernetes import kai, kueue
from ultracluster.model import Cluster
from ultracluster.model.job_access import WorkdirPlace
from ultracluster.model.team_shares import namespace_of, scheduler_of

Manifest = dict[str, Any]

TOKEN = "ultracluster/submission"  # noqa: S105 - an annotation
"""Annotation of everything that was submitted together."""
USER = "ultracluster/user"
"""Annotation: who submitted it, as AWS names them. Whoever may write jobs may write another name."""
JOB = "ultracluster/job"
"""Annotation of what belongs to a job: its kind and name."""
PROGRAM = "@program@"
"""Stands in a job's text where its program is named."""
PROGRAM_FOLDER = "/ultracluster/program"
"""In each container of a job."""
_VOLUME = "ultracluster-program"
_LAUNCHERS = ("torchrun", "hyperpodrun", "python")
"""Of the jobs that this package writes: the first argument that is no option is the program."""
_JAX_WORDS = 3
_METADATA = ("name", "namespace", "labels", "annotations")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class JobDocuments:
    """What is made in the cluster."""

    kind: JobKind
    namespace: str
    team: str | None
    job: Manifest
    companions: tuple[Manifest, ...]
    """Made before the job, in this order."""
    notes: tuple[str, ...] = ()
    """Additions to what a person wrote, and where the cluster does not fit it."""

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def all(self) -> tuple[Manifest, ...]:
        return (*self.companions, self.job)


def job_documents(
    cluster: Cluster,
    text: str,
    *,
    team: str | None,
    token: str,
    user: str = "",
    program: tuple[str, bytes] | None = None,
    arguments: Sequence[str] = (),
    workdir: tuple[WorkdirPlace, str] | None = None,
) -> JobDocuments:
    """The objects of one job.

    Args:
        text: one or more documents of YAML.
        team: whose job it is; where it is None the namespace of the job says so.
        token: of this submission.
        user: who submits.
        program: name and content of a file that travels with the job.
        arguments: of the program.
        workdir: where the archive of a folder is in which the job starts, and its SHA-256.

    Raises:
        ValueError: it says what is wrong, where, and what would do.
    """
    documents = _read(text)
    jobs = [document for document in documents if kind_of(document)]
    if len(jobs) != 1:
        found = ", ".join(f"{job['kind']} {job['metadata']['name']}" for job in jobs)
        raise ValueError(
            f"the file has {len(jobs)} jobs ({found}): submit one at a time, each with what belongs to it"
            if jobs
            else f"the file has no job: one of {', '.join(sorted({kind.kind for kind in KINDS}))}"
        )
    job, notes = jobs[0], list[str]()
    kind = kind_of(job)
    assert kind
    named = f"{job['kind']}/{job['metadata']['name']}"
    companions = [document for document in documents if document is not job]
    for companion in companions:
        if (companion["apiVersion"], companion["kind"]) not in COMPANIONS:
            raise ValueError(_other_kind(companion))
    everything = [*companions, job]
    team, namespace = _namespace(cluster, everything, team)
    for one in everything:
        if one["metadata"].get("namespace") is None:
            one["metadata"]["namespace"] = namespace
            note = f"namespace: {namespace}" + (f" (team {team})" if team else "")
            notes += [note] if note not in notes else []
    notes += [*_queue(cluster, kind, job, team, namespace), *job_notes(cluster, kind, job)]
    if program:
        config = _program(kind, job, token, *program)
        companions.append(config)
        notes += _put_program(kind, job, program[0], arguments, config["metadata"]["name"])
    elif PROGRAM in text:
        raise ValueError(f"the manifest names a program ({PROGRAM}) that comes with the job: --program FILE")
    if workdir:
        notes += put_workdir(kind.templates(job), *workdir)
    for one in [*companions, job]:
        annotations = one["metadata"].setdefault("annotations", {})
        annotations |= {TOKEN: token, **({USER: user} if user else {})}
        if one is not job:
            annotations[JOB] = named
    return JobDocuments(kind, namespace, team, job, tuple(companions), tuple(notes))


# --- reading ------------------------------------------------------------------------------------------------


def _read(text: str) -> list[Manifest]:
    if text.startswith("#!"):
        raise ValueError(
            "it is a script, as Slurm takes it, and this cluster takes manifests: `job write` prints some"
        )
    if line := directive_line(text):
        raise ValueError(f"line {line}: a YAML directive (%) changes what words mean: leave it out")
    try:
        documents = [document for document in load_documents(text) if document is not None]
    except TooDeepError:
        raise ValueError("its values lie in one another deeper than a manifest's do") from None
    except TooMuchError:
        raise ValueError("it holds, or its aliases repeat, more than a job needs") from None
    except ValueError as error:
        raise ValueError(f"it is not YAML: {one_line(' '.join(str(error).split()))}") from None
    left = [MOST_VALUES]
    for number, one in enumerate(documents, 1):
        _check_values(one, f"document {number}", left)
        _check_object(one, number)
    # aliases become copies: a change of one must not be one of all
    return [json.loads(json.dumps(document)) for document in documents]


def _check_values(value: Any, path: str, left: list[int], level: int = 0) -> None:
    """Refuse what YAML knows and JSON does not, and what aliases blow up.

    Args:
        left: values that there may still be.
        level: of the value; an alias may hold itself.
    """
    left[0] -= 1 + (len(value) // 1000 if isinstance(value, str) else 0)
    if left[0] < 0 or level > MOST_LEVELS:
        raise ValueError("its values, with those that aliases repeat, are more, or deeper, than a job needs")
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{path}: the key {_shown(key)} is no text: write it in quotes")
            _check_values(one, f"{path}, {_shown(key)}" if len(path) < 200 else path, left, level + 1)
    elif isinstance(value, list):
        for one in value:
            _check_values(one, path, left, level + 1)
    elif isinstance(value, date):  # a datetime is one, too
        raise ValueError(f"{path}: {value} is a date in YAML: write it in quotes")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path}: {value} is no number of JSON: write it in quotes")
    elif not isinstance(value, str | int | float | type(None)):
        raise ValueError(f"{path}: a {type(value).__name__} has no place in a manifest")


def _check_object(one: Any, number: int) -> None:
    where = f"document {number}"
    if not isinstance(one, dict):
        raise ValueError(f"{where} is no object of Kubernetes: it has neither apiVersion nor kind")
    for key in ("apiVersion", "kind"):
        if not isinstance(one.get(key), str):
            raise ValueError(f"{where} has no {key}")
    where = f"document {number} ({_shown(one['kind'])})"
    if kind_of(one) is None and (one["apiVersion"], one["kind"]) not in COMPANIONS:
        raise ValueError(f"{where}: {_other_kind(one)}")
    metadata = one.get("metadata")
    if not isinstance(metadata, dict):
        raise ValueError(f"{where} has no metadata, and so no name")
    if "generateName" in metadata:
        raise ValueError(f"{where}: generateName makes a new job whenever it is asked again: write a name")
    if more := [key for key in metadata if key not in _METADATA]:
        raise ValueError(
            f"{where}: metadata.{_shown(more[0])} is not yours to write; {', '.join(_METADATA)} are"
        )
    name = metadata.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{where}: {_shown(name)} is no name: lower-case letters, digits and `-`, 63 at the most"
        )
    for key in ("labels", "annotations"):
        if metadata.get(key, "") is None:  # written, and empty
            del metadata[key]
    if not isinstance(metadata.get("namespace", ""), str | None):
        raise ValueError(f"{where}: metadata.namespace is no text")
    for key in ("labels", "annotations"):
        values = metadata.get(key, {})
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ValueError(
                f"{where}: metadata.{key} has words for values: write numbers and true in quotes"
            )
    if "status" in one:
        raise ValueError(f"{where}: status is Kubernetes' to write: leave it out")


def _other_kind(one: Manifest) -> str:
    version, kind = one["apiVersion"], one["kind"]
    known = [*((row.version, row.kind) for row in KINDS), *COMPANIONS]
    versions = [of for of, named in known if named == kind]
    if versions:
        return f"{kind} is of {' or '.join(versions)} here, not of {_shown(version)}"
    if kind == "List":
        return "a List is not read: write its items as documents, with --- between them"
    if kind == "RayCluster":
        return "a RayCluster runs, and holds its nodes, until somebody deletes it: write a RayJob, which ends"
    if kind == "Pod":
        return "a bare Pod is counted by no queue: put it into a Job"
    near = difflib.get_close_matches(kind, [named for _, named in known], 1)
    jobs = ", ".join(sorted({row.kind for row in KINDS}))
    return (
        f"{_shown(kind)} is neither a job nor what belongs to one"
        f"{f'; do you mean {near[0]}' if near else ''}: a job is one of {jobs}, and it brings "
        f"{', '.join(named for _, named in COMPANIONS)}"
    )


def _shown(value: object) -> str:
    return f"`{clipped(one_line(str(value)), 80)}`"


# --- whose it is --------------------------------------------------------------------------------------------


def _namespace(cluster: Cluster, documents: list[Manifest], team: str | None) -> tuple[str | None, str]:
    """Team and namespace of a job."""
    spaces = {name: namespace_of(cluster, name) for name in cluster.environment.teams}
    written = list(
        dict.fromkeys(
            document["metadata"]["namespace"]
            for document in documents
            if document["metadata"].get("namespace")
        )
    )
    if len(written) > 1:
        raise ValueError(
            f"its documents name several namespaces ({', '.join(map(_shown, written))}): one job has one"
        )
    if team is None and spaces:
        names = [name for name, space in spaces.items() if written == [space]]
        if not names:
            said = f"; {_shown(written[0])} is no team's namespace" if written else ""
            raise ValueError(f"this environment has teams: pass --team ({', '.join(spaces)}){said}")
        team = names[0]
    wanted = spaces[team] if team else "default"
    if written and written != [wanted]:
        whose = f"the jobs of team {team} are in" if team else "without teams jobs are in"
        raise ValueError(
            f"metadata.namespace is {_shown(written[0])}, and {whose} `{wanted}`: write that, or leave it out"
        )
    return team, wanted


def _queue(cluster: Cluster, kind: JobKind, job: Manifest, team: str | None, namespace: str) -> list[str]:
    """Name the queue of the team where a job names none; a job without one waits for nothing, or for ever."""
    scheduler, labels = scheduler_of(cluster), job["metadata"].setdefault("labels", {})
    if scheduler in ("kueue", "task-governance"):
        if kueue.QUEUE_LABEL in labels:
            return []
        queue = f"{namespace}-localqueue" if scheduler == "task-governance" else kueue.queue(team)
        labels[kueue.QUEUE_LABEL] = queue
        return [f"queue: {queue} (label {kueue.QUEUE_LABEL})"]
    if not labels:
        del job["metadata"]["labels"]
    spec = job.get("spec")
    if scheduler == "volcano":
        if not kind.version.startswith("batch.volcano.sh/"):
            return [f"a {kind.kind} of {kind.version} gets round the queues of Volcano"]
        if isinstance(spec, dict) and "queue" not in spec:
            spec["queue"] = team or "default"
            return [f"queue: {spec['queue']} (spec.queue)"]
    if scheduler == "kai" and kai.QUEUE_LABEL not in labels:
        return [f"the job names no queue of KAI (label {kai.QUEUE_LABEL}), and so gets round them"]
    return []


# --- its program --------------------------------------------------------------------------------------------


def _program(kind: JobKind, job: Manifest, token: str, name: str, content: bytes) -> Manifest:
    """The ConfigMap that holds it; its name is this submission's alone."""
    if not _KEY.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"--program {_shown(name)}: a ConfigMap takes letters, digits, `.`, `_` and `-` in names"
        )
    if not any(True for _ in kind.templates(job)):
        raise ValueError(
            f"--program: a {kind.kind} has no pods in its text into which a program could be put"
        )
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{job['metadata']['name']}-program-{token[:8].lower()}",
            "namespace": job["metadata"]["namespace"],
        },
    }
    try:
        manifest["data"] = {name: content.decode()}
    except UnicodeDecodeError:
        manifest["binaryData"] = {name: base64.b64encode(content).decode()}
    return manifest


def _put_program(kind: JobKind, job: Manifest, name: str, arguments: Sequence[str], config: str) -> list[str]:
    """Mount it in each container, and start it where the job's text says so."""
    path, placed = f"{PROGRAM_FOLDER}/{name}", False
    for template in kind.templates(job):
        spec = template.get("spec")
        containers = spec.get("containers") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(containers, list):
            raise ValueError(f"the pods of the {kind.kind} have no containers")
        volume = {"name": _VOLUME, "configMap": {"name": config, "defaultMode": 0o555}}
        spec["volumes"] = [*(spec.get("volumes") or []), volume]
        for container in containers:
            if not isinstance(container, dict):
                raise ValueError(f"a container of the {kind.kind} is no mapping")
            mount = {"name": _VOLUME, "mountPath": PROGRAM_FOLDER, "readOnly": True}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
            placed = _started(container, path, arguments) or placed
    if kind.label == RAY_CLUSTER:
        placed = _entered(job["spec"], path, arguments)
    if placed:
        return [f"program: {path}"]
    if arguments:
        raise ValueError(
            f"arguments of a program, and no container starts one: write {PROGRAM} among its arguments, or "
            "the arguments themselves"
        )
    return [f"program: {path} in each container; the manifest must start it"]


def _entered(spec: Manifest, path: str, arguments: Sequence[str]) -> bool:
    """Start the program on the head of Ray, where it is named or for python's script; False for neither."""
    words = str(spec.get("entrypoint", "")).split()
    script = words[0] in _LAUNCHERS and not words[1].startswith("-") if len(words) > 1 else False
    if PROGRAM not in words and not script:
        return False
    at = words.index(PROGRAM) if PROGRAM in words else 1
    rest = words[at + 1 :] if PROGRAM in words or not arguments else []
    spec["entrypoint"] = " ".join([*words[:at], path, *arguments, *rest])
    return True


def _started(container: Manifest, path: str, arguments: Sequence[str]) -> bool:
    """Return whether a container now starts the program."""
    for key in ("command", "args"):
        words = container.get(key)
        if isinstance(words, list) and PROGRAM in words:
            at = words.index(PROGRAM)
            container[key] = [*words[:at], path, *arguments, *words[at + 1 :]]
            return True
    words, command = container.get("args"), container.get("command")
    of_jax = isinstance(command, list) and command[:2] == ["bash", "-c"] and command[3:] == ["jax"]
    if of_jax and isinstance(words, list) and len(words) >= _JAX_WORDS:
        at = _JAX_WORDS - 1  # the place of the node, the first node, the program
        container["args"] = [*words[:at], path, *(arguments or words[at + 1 :])]
        return True
    if container.get("command") not in [[launcher] for launcher in _LAUNCHERS] or not isinstance(words, list):
        return False
    for at, word in enumerate(words):
        if isinstance(word, str) and not word.startswith("-"):
            container["args"] = [*words[:at], path, *(arguments or words[at + 1 :])]
            return True
    return False

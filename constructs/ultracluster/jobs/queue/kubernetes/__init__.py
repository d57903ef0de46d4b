# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""The jobs of a Kubernetes cluster, through its API: of every kind, with what their scheduler says of them.

Whoever asks sees the namespaces that they may see: an admin all, a member those of their teams.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.kubernetes_api import KubernetesApi, RefusedError
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.manifests.job_documents import USER, job_documents
from ultracluster.jobs.manifests.job_kinds import KINDS, JobKind, place
from ultracluster.jobs.queue.kubernetes import logs, usage
from ultracluster.jobs.queue.kubernetes.state import newest_try, of_job, queued_job
from ultracluster.jobs.queue.kubernetes.submit import submit as make
from ultracluster.jobs.queue.protocol import LogPart, NoSuchJobError, NotSubmittedError, QueuedJob, Submission
from ultracluster.model import Cluster
from ultracluster.model.team_shares import namespace_of, scheduler_of
from ultracluster.plan.usage import Records, Run

Manifest = dict[str, Any]

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_WORKLOADS = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
"""Kueue's from 0.15 on, and before: HyperPod's task governance brings a Kueue of its own."""
_OWNERS = frozenset(kind.kind for kind in KINDS)


class KubernetesQueue:
    """The jobs of one cluster."""

    def __init__(
        self,
        account: Account,
        cluster: Cluster,
        *,
        team: str | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Find the API.

        Args:
            team: whose jobs; of all where it is None.
            say: told in a line what is done beyond what was written.

        Raises:
            AccountError: there is no such cluster, or no such team.
        """
        teams = cluster.environment.teams
        if team is not None and team not in teams:
            raise AccountError(
                f"there is no team `{one_line(team)}`: {', '.join(teams) or 'the environment has none'}"
            )
        self._cluster, self._team, self._say = cluster, team, say
        self._spaces = {namespace_of(cluster, name): name for name in teams}
        self._account = account
        self._api = KubernetesApi(account, cluster.cluster_name)
        self._workloads_at: str | None = ""
        self._known: dict[str, tuple[JobKind, str]] = {}

    @property
    def place(self) -> str:
        return f"the Kubernetes API of {self._api.cluster} as {self._who()}"

    def records(self, cluster: Cluster, since: datetime, until: datetime) -> Records:
        """Pods of jobs that are there: Kubernetes keeps no other records, whatever the times are."""
        now = time.time()
        notes = [usage.NOTE]
        try:
            nodes = {str(one["metadata"]["name"]): one for one in self._api.nodes()}
        except RefusedError:
            nodes = {}
            notes.append("Nodes may not be listed: parts of nodes are those of the catalogue's types")
        runs: list[Run] = []
        groups: dict[str, str] = {}
        readable = self._readable()
        if hidden := sorted({*self._namespaces()} - {namespace for namespace, _ in readable}):
            notes.append(f"You may not read jobs of {', '.join(hidden)}: their hours are in the row `idle`")
        for namespace, jobs in readable:
            pods = self._api.items(place("v1", "pods", namespace)) if jobs else []
            workloads = self._workloads(namespace) if jobs else []
            for kind, job in jobs:
                queued = self._queued(kind, job, pods, workloads)
                own = of_job(kind, job, pods)
                found = list(usage.runs_of_pods(cluster, queued, own, nodes))
                for pod in own:
                    if name := str(pod.get("spec", {}).get("nodeName") or ""):
                        groups[name] = usage.group_of(cluster, pod, nodes.get(name))
                workload = None if found else _workload_of(job, workloads)
                for run, group in usage.run_of_workload(cluster, queued, workload) if workload else ():
                    found.append(run)
                    groups |= dict.fromkeys(run.nodes, group)
                runs += found
        known = {name: group for name, group in groups.items() if group}
        return Records(place=self.place, now=now, runs=tuple(runs), groups=known, notes=tuple(notes))

    def close(self) -> None:
        """Nothing is open between questions."""

    # --- what a person does ------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> QueuedJob:
        program, workdir = submission.program, submission.workdir
        try:
            documents = job_documents(
                self._cluster,
                submission.text,
                team=self._team,
                token=submission.token,
                user=self._who(),
                program=(program.name, program.content) if program else None,
                arguments=program.arguments if program else (),
                workdir=(workdir.place, workdir.digest) if workdir else None,
            )
        except ValueError as error:
            raise NotSubmittedError(str(error)) from None
        for note in documents.notes:
            self._say(note)
        made = make(self._api, documents, say=self._say)
        return queued_job(documents.kind, made, [], team=documents.team or "")

    def jobs(self, *, everyone: bool = False) -> Sequence[QueuedJob]:
        found: list[QueuedJob] = []
        mine = self._who()
        for namespace, jobs in self._readable():
            pods = self._api.items(place("v1", "pods", namespace)) if jobs else []
            workloads = self._workloads(namespace) if jobs else []
            for kind, job in jobs:
                user = ((job["metadata"].get("annotations") or {}).get(USER)) or mine
                if everyone or user == mine:
                    found.append(self._queued(kind, job, pods, workloads))
        return sorted(found, key=lambda one: (one.submitted is None, one.submitted, one.id))

    def job(self, job_id: str) -> QueuedJob:
        kind, job = self._find(job_id)
        namespace = str(job["metadata"]["namespace"])
        pods = self._pods(kind, job)
        warnings = self._warnings(job) if not pods else []
        return self._queued(kind, job, pods, self._workloads(namespace), warnings)

    def log(self, job_id: str, after: str = "", *, lines: int | None = None, part: str = "") -> LogPart:
        kind, job = self._find(job_id)
        pods = self._pods(kind, job)
        chosen, wrong = logs.of_place(pods, part)
        if wrong:
            raise NoSuchJobError(wrong)
        over = queued_job(kind, job, pods, team="").over
        return logs.read(self._api.request, logs.sources(chosen), after, lines=lines, over=over)

    def cancel(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Each by its uid: a job of the same name that came meanwhile is another one."""
        answers: dict[str, str] = {}
        for identifier in ids:
            try:
                kind, job = self._find(identifier)
                options = {
                    "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
                    "preconditions": {"uid": job["metadata"]["uid"]},
                }  # fmt: skip
                path = f"{kind.place(job['metadata']['namespace'])}/{job['metadata']['name']}"
                self._api.request(path, method="DELETE", body=options)
                answers[identifier] = ""
            except RefusedError as error:
                gone = error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
                answers[identifier] = "" if gone else str(error)
            except (AccountError, NoSuchJobError) as error:
                answers[identifier] = str(error)
        return answers

    def first_pod(self, job_id: str) -> tuple[str, str, str] | None:
        """Namespace, name and container of the first pod of a job, once it runs.

        Raises:
            NoSuchJobError: there is no such job (any more).
        """
        kind, job = self._find(job_id)
        for pod in newest_try(self._pods(kind, job))[:1]:
            if (pod.get("status") or {}).get("phase") == "Running":
                meta = pod["metadata"]
                return str(meta["namespace"]), str(meta["name"]), str(pod["spec"]["containers"][0]["name"])
        return None

    @property
    def api(self) -> KubernetesApi:
        """The cluster's API."""
        return self._api

    # --- what is there -----------------------------------------------------------------------------------

    def _queued(
        self,
        kind: JobKind,
        job: Manifest,
        pods: Sequence[Manifest],
        workloads: Sequence[Manifest],
        warnings: Sequence[Manifest] = (),
    ) -> QueuedJob:
        meta = job["metadata"]
        workload = _workload_of(job, workloads)
        team = self._spaces.get(str(meta.get("namespace", "")), "")
        own = of_job(kind, job, pods)
        return queued_job(kind, job, own, team=team, workload=workload, warnings=warnings)

    def _namespaces(self) -> list[str]:
        if self._team:
            return [namespace_of(self._cluster, self._team)]
        return ["default", *self._spaces] if self._spaces else ["default"]

    def _readable(self) -> list[tuple[str, list[tuple[JobKind, Manifest]]]]:
        """The jobs of each namespace that may be read.

        Raises:
            AccountError: none may be.
        """
        found: list[tuple[str, list[tuple[JobKind, Manifest]]]] = []
        refused: RefusedError | None = None
        missing: set[JobKind] = set()
        for namespace in self._namespaces():
            jobs: list[tuple[JobKind, Manifest]] = []
            try:
                # Kubernetes' own first: every cluster has it, and who may not list it may list nothing here
                for kind in sorted(KINDS, key=lambda one: one.version != "batch/v1"):
                    if kind not in missing:
                        jobs += self._of_kind(kind, namespace, missing)
            except RefusedError as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                refused = refused or error
                continue
            found.append((namespace, jobs))
        if not found and refused:
            raise refused
        return found

    def _of_kind(
        self, kind: JobKind, namespace: str, missing: set[JobKind]
    ) -> list[tuple[JobKind, Manifest]]:
        try:
            items = self._api.items(kind.place(namespace))
        except RefusedError as error:
            # an operator that is not there, or one that members have nothing to do with
            if error.status == HTTPStatus.NOT_FOUND:
                missing.add(kind)
                return []
            if error.status == HTTPStatus.FORBIDDEN and kind.version != "batch/v1":
                return []
            raise
        return [(kind, _whole(kind, item)) for item in items if not _made_by_another(item)]

    def _find(self, job_id: str) -> tuple[JobKind, Manifest]:
        """The job of an id: `namespace/name`, `kind/namespace/name`, or its name where that is the only one.

        Raises:
            NoSuchJobError: there is none, or several.
        """
        if job_id in self._known:
            kind, path = self._known[job_id]
            try:
                return kind, self._api.get(path)
            except RefusedError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
        kinds, rest = KINDS, job_id
        if job_id.count("/") == 2:
            word, _, rest = job_id.partition("/")
            kinds = tuple(kind for kind in KINDS if kind.kind.lower() == word.lower())
        space, _, name = rest.rpartition("/")
        if not kinds or not _NAME.fullmatch(name) or (space and not _NAME.fullmatch(space)):
            raise NoSuchJobError(f"`{one_line(job_id)}` is no job of Kubernetes: NAMESPACE/NAME, or NAME")
        known = self._namespaces()
        if space and space not in known:
            raise NoSuchJobError(f"`{space}` is no namespace of jobs here: {', '.join(known)}")
        found: list[tuple[JobKind, Manifest]] = []
        refused: RefusedError | None = None
        for namespace in [space] if space else known:
            for kind in kinds:
                try:
                    item = self._api.get(f"{kind.place(namespace)}/{quote(name, safe='')}")
                except RefusedError as error:
                    if error.status == HTTPStatus.FORBIDDEN:
                        refused = refused or error
                    elif error.status != HTTPStatus.NOT_FOUND:
                        raise
                    continue
                if not _made_by_another(item):
                    found.append((kind, item))
        if not found:
            if space and refused:
                raise refused
            raise NoSuchJobError(
                f"there is no job {one_line(job_id)} (any more) in {space or ', '.join(known)}"
            )
        if len(found) > 1:
            several = ", ".join(f"{kind.kind}/{item['metadata']['namespace']}/{name}" for kind, item in found)
            raise NoSuchJobError(f"several jobs are called {name}: {several}")
        kind, item = found[0]
        self._known[job_id] = kind, f"{kind.place(item['metadata']['namespace'])}/{name}"
        return found[0]

    def _pods(self, kind: JobKind, job: Manifest) -> list[Manifest]:
        meta = job["metadata"]
        # pods of a kind that also starts a Job have one of two labels: all are read then
        selector = quote(f"{kind.label}={meta['name']}", safe="")
        query = "" if kind.starts_job else f"?labelSelector={selector}"
        pods = self._api.items(f"{place('v1', 'pods', meta['namespace'])}{query}")
        return of_job(kind, job, pods)

    def _workloads(self, namespace: str) -> list[Manifest]:
        """Return the workloads of Kueue in a namespace; none where it is not installed or cannot be read."""
        if scheduler_of(self._cluster) not in ("kueue", "task-governance") or self._workloads_at is None:
            return []
        for version in (self._workloads_at,) if self._workloads_at else _WORKLOADS:
            try:
                found = self._api.items(place(version, "workloads", namespace))
            except RefusedError:
                continue
            self._workloads_at = version
            return found
        self._workloads_at = None
        return []

    def _warnings(self, job: Manifest) -> list[Manifest]:
        """Events of a job, and of what it makes, that warn."""
        meta = job["metadata"]
        try:
            events = self._api.items(
                f"{place('v1', 'events', meta['namespace'])}?fieldSelector=type%3DWarning"
            )
        except RefusedError:
            return []
        name = str(meta["name"])
        return [
            event
            for event in events
            if (of := str((event.get("involvedObject") or {}).get("name", ""))) == name
            or of.startswith(f"{name}-")
        ]

    def _who(self) -> str:
        """Return who asks, as AWS names them: the session of a role, or a user."""
        return one_line(self._account.identity().arn.rpartition("/")[2])


def _workload_of(job: Manifest, workloads: Sequence[Manifest]) -> Manifest | None:
    """Workload that Kueue made of a job."""
    uid = job["metadata"].get("uid")
    return next(
        (
            one
            for one in workloads
            for owner in (one.get("metadata") or {}).get("ownerReferences") or []
            if owner.get("uid") == uid
        ),
        None,
    )


def _made_by_another(item: Manifest) -> bool:
    """Return whether another job made it: a JobSet makes Jobs."""
    owners: list[Manifest] = (item.get("metadata") or {}).get("ownerReferences") or []
    return any(owner.get("controller") and owner.get("kind") in _OWNERS for owner in owners)


def _whole(kind: JobKind, item: Manifest) -> Manifest:
    """An item of a list, which names no kind of its own."""
    return {"apiVersion": kind.version, "kind": kind.kind, **item}


__all__ = ["KubernetesQueue"]

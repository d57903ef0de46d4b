# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""A job's objects, made in the cluster once, and all of them or none.

Everything is tried first without being kept (`dryRun=All`), so that a second object which is refused leaves
no first one. Then what belongs to the job is made, then the job, and at last the job owns the rest: it goes
with it. Each object carries the submission's token: whether a lost request arrived is asked by name, never
by sending it again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi, NoAnswerError, RefusedError
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.manifests.job_documents import JOB, TOKEN, JobDocuments
from ultracluster.jobs.manifests.job_kinds import COMPANIONS, KINDS, kind_of, place
from ultracluster.jobs.queue.protocol import NotSubmittedError, UnansweredError

Manifest = dict[str, Any]

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between questions whether a request arrived."""
_STRICT = "fieldManager=ultracluster&fieldValidation=Strict"
_MERGE = "application/merge-patch+json"


def submit(
    api: KubernetesApi,
    documents: JobDocuments,
    *,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Manifest:
    """Make them; the job as the API has it.

    Raises:
        NotSubmittedError: something was refused; nothing of it is there.
        UnansweredError: whether the job is there could not be found out.
        AccountError: the API cannot be asked; nothing was made.
    """
    for one in documents.all:
        _try(api, one, documents)
    manifests: list[Manifest] = []
    for companion in documents.companions:
        try:
            manifests.append(_make(api, companion, sleep))
        except AccountError as error:
            _undo(
                api,
                [*manifests, companion] if isinstance(error, NoAnswerError) else manifests,
                f"{called(companion)}: {error}",
            )
    try:
        job = _make(api, documents.job, sleep)
    except NoAnswerError as error:
        raise UnansweredError(
            f"{error}, so that {documents.namespace}/{documents.name} may be there"
        ) from None
    except AccountError as error:
        _undo(api, manifests, str(_refusal(api, documents.job, documents, error)))
    _own(api, job, manifests, say)
    return job


def _try(api: KubernetesApi, one: Manifest, documents: JobDocuments) -> None:
    """Whether it would be taken."""
    for attempt in range(2):
        try:
            api.request(f"{_collection(one)}?dryRun=All&{_STRICT}", method="POST", body=one)
            return
        except NoAnswerError as error:  # nothing was to be kept
            raise NotSubmittedError(f"{error}; nothing was submitted") from None
        except RefusedError as error:
            if "does not support dry run" in str(error):
                return  # a webhook of some operator: what is wrong shows when it is made
            if attempt or not _clear(api, one, error):
                raise _refusal(api, one, documents, error) from None


def _clear(api: KubernetesApi, one: Manifest, error: RefusedError) -> bool:
    """Return whether what was in the way is deleted: a submission left it whose job never came."""
    there = _find(api, one) if error.status == HTTPStatus.CONFLICT and kind_of(one) is None else None
    annotations: Manifest = ((there or {}).get("metadata") or {}).get("annotations") or {}
    kind, _, name = str(annotations.get(JOB, "")).partition("/")
    if there is None or TOKEN not in annotations or there["metadata"].get("ownerReferences"):
        return False
    namespace = str(one["metadata"]["namespace"])
    for row in (row for row in KINDS if row.kind == kind):
        if _find(
            api, {"apiVersion": row.version, "kind": kind, "metadata": {"namespace": namespace, "name": name}}
        ):
            return False
    return _delete(api, there)


def _refusal(api: KubernetesApi, one: Manifest, documents: JobDocuments, error: AccountError) -> Exception:
    """Return what a refusal means for whoever submits."""
    if not isinstance(error, RefusedError):
        return error
    kind = kind_of(one)
    if error.status == HTTPStatus.NOT_FOUND:
        if "namespaces" in str(error):
            text = f"the namespace {documents.namespace} is not there: deploy the environment first"
        else:
            text = f"the cluster knows no {one['kind']} of {one['apiVersion']}: its operator is not installed"
        return NotSubmittedError(text)
    if error.status == HTTPStatus.CONFLICT and error.reason == "AlreadyExists":
        there = _find(api, one)
        if there is None or not there["metadata"].get("deletionTimestamp"):
            what = "cancel it, or give this one another --name" if kind else "give yours another name"
            return NotSubmittedError(f"there is a {called(one)} in {documents.namespace} already: {what}")
        return NotSubmittedError(f"the former {called(one)} is still being removed: try again in a minute")
    return NotSubmittedError(f"{called(one)}: {error}")


def _make(api: KubernetesApi, one: Manifest, sleep: Callable[[float], None]) -> Manifest:
    """Make one object. A request whose answer was lost is looked for, and never sent again.

    Raises:
        NoAnswerError: it is not known whether it is there.
    """
    try:
        answer = api.request(f"{_collection(one)}?{_STRICT}", method="POST", body=one)
        return _object(answer)
    except (NoAnswerError, ValueError) as error:
        said = str(error) if isinstance(error, NoAnswerError) else "the answer is no object of Kubernetes"
        for seconds in WAITS:
            sleep(seconds)
            try:
                there = _find(api, one)
            except AccountError:
                continue
            if there is not None and _token(there) == _token(one):
                return there
        raise NoAnswerError(said) from None


def _undo(api: KubernetesApi, made: list[Manifest], why: str) -> None:
    """Remove what was made, and say why.

    Raises:
        NotSubmittedError: always.
    """
    left: list[str] = []
    for one in reversed(made):
        try:
            there = _find(api, one)
            if there is not None and _token(there) == _token(one) and not _delete(api, there):
                left.append(called(one))
        except AccountError:
            left.append(called(one))
    more = f". Made before it, and still there: {', '.join(left)}" if left else ""
    raise NotSubmittedError(f"{why}{more}")


def _own(api: KubernetesApi, job: Manifest, made: list[Manifest], say: Callable[[str], None]) -> None:
    """Let the job own what came with it, so that they go together."""
    meta = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"],
    }  # fmt: skip
    for one in made:
        patch = {"metadata": {"uid": one["metadata"]["uid"], "ownerReferences": [owner]}}
        for attempt in range(2):
            try:
                api.request(path(one), method="PATCH", body=patch, content=_MERGE)
                break
            except AccountError as error:
                if attempt:
                    say(f"{called(one)} stays when the job is removed: {error}")


def _find(api: KubernetesApi, one: Manifest) -> Manifest | None:
    """Return what is there under this name; None where there is nothing."""
    try:
        return api.get(path(one))
    except RefusedError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def _delete(api: KubernetesApi, there: Manifest) -> bool:
    options = {
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
        "preconditions": {"uid": there["metadata"]["uid"]},
    }  # fmt: skip
    try:
        api.request(path(there), method="DELETE", body=options)
    except RefusedError as error:
        return error.status == HTTPStatus.NOT_FOUND
    except AccountError:
        return False
    return True


def _object(answer: bytes) -> Manifest:
    document: Any = json.loads(answer)
    if (
        not isinstance(document, dict)
        or not isinstance(document.get("metadata"), dict)
        or "uid" not in document["metadata"]
    ):
        raise ValueError
    return document


def _token(one: Manifest) -> str:
    return str(((one.get("metadata") or {}).get("annotations") or {}).get(TOKEN, ""))


def _collection(one: Manifest) -> str:
    kind = kind_of(one)
    plural = kind.plural if kind else COMPANIONS[one["apiVersion"], one["kind"]]
    return place(one["apiVersion"], plural, one["metadata"]["namespace"])


def path(one: Manifest) -> str:
    """Return where an object is."""
    return f"{_collection(one)}/{one['metadata']['name']}"


def called(one: Manifest) -> str:
    """`JobSet train`."""
    return one_line(f"{one['kind']} {one['metadata']['name']}")


__all__ = ["called", "path", "submit"]

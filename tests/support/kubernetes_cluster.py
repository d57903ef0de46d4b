"""A Kubernetes API over TLS that refuses what a real one refuses.

It knows who asks (the token of EKS, decoded), what they may do (the roles and bindings that a deploy
applies), what an object must be (Kubernetes' published schemas; for custom kinds the table of their
fields), and how a list is paged, a log is cut and an object is deleted. Its controllers do only what a test
tells them: no pod runs by itself.

Status texts and reasons are those of kubernetes/kubernetes 1.34
(staging/src/k8s.io/apimachinery/pkg/api/errors).
"""

from __future__ import annotations

import base64
import copy
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from crd_fields import DNS_NAME, TABLE, problems
from kubernetes_service import tls_server

Manifest = dict[str, Any]
ADMIN = "system:masters"
_CORE = ("configmaps", "events", "namespaces", "nodes", "pods", "secrets", "services")
_KINDS = {
    "v1": {"configmaps": "ConfigMap", "events": "Event", "namespaces": "Namespace", "nodes": "Node",
           "pods": "Pod", "secrets": "Secret", "services": "Service"},
    "batch/v1": {"jobs": "Job"},
    "resource.k8s.io/v1": {"resourceclaimtemplates": "ResourceClaimTemplate"},
}  # fmt: skip
CUSTOM = {
    "jobset.x-k8s.io/v1alpha2": {"jobsets": "JobSet"},
    "batch.volcano.sh/v1alpha1": {"jobs": "Job"},
    "kueue.x-k8s.io/v1beta2": {"workloads": "Workload", "localqueues": "LocalQueue"},
    "kubeflow.org/v1": {"pytorchjobs": "PyTorchJob"},
    "ray.io/v1": {"rayjobs": "RayJob"},
    "sagemaker.amazonaws.com/v1": {"hyperpodpytorchjobs": "HyperPodPyTorchJob"},
    "resource.nvidia.com/v1beta1": {"computedomains": "ComputeDomain"},
}
"""What operators bring: a stub has those that a test names."""
_CLUSTER_WIDE = ("namespaces", "nodes")
_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[a-z0-9.-]+/[a-z0-9]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)
_TOKEN = re.compile(r"Bearer k8s-aws-v1\.([A-Za-z0-9_-]+)")
_LARGEST_CONFIG = 1 << 20


class StatusError(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        }  # fmt: skip
        self.code = code


@dataclass
class Log:
    """What a container wrote: each line with its time."""

    lines: list[tuple[datetime, str]] = field(default_factory=list)

    def write(self, *lines: str, at: datetime | None = None) -> None:
        start = at or datetime.now(UTC)
        self.lines += [(start + timedelta(microseconds=index), line) for index, line in enumerate(lines)]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    groups: tuple[str, ...]


class Cluster:
    """An API server and what it keeps.

    Attributes:
        objects: by (apiVersion, plural, namespace, name).
        logs: by (namespace, pod, container, instance); instance 0 is the first.
        asked: every request that came.
        lose: called with a request before it is done; `before` or `after` loses it or its answer, what it
            raises is the answer.
    """

    def __init__(self, *custom: str, release: str = "1.34") -> None:
        self.release = release
        self.kinds = {**_KINDS, **{one: CUSTOM[one] for one in custom}}
        self.objects: dict[tuple[str, str, str, str], Manifest] = {}
        self.logs: dict[tuple[str, str, str, int], Log] = {}
        self.asked: list[Asked] = []
        self.lose: Any = lambda asked: ""
        self.groups: dict[str, tuple[str, ...]] = {}
        self.rights: list[Manifest] = []
        self.endpoint = self.authority = ""
        self._version = 0
        self._pages: dict[str, list[Manifest]] = {}
        self.lock = threading.RLock()

    # --- what a test makes -------------------------------------------------------------------------------

    def namespace(self, *names: str) -> None:
        for name in names:
            self.put("v1", "namespaces", {"metadata": {"name": name}})

    def put(self, version: str, plural: str, item: Manifest) -> Manifest:
        """Store an object as a controller does: nobody's rights are asked."""
        with self.lock:
            metadata = item.setdefault("metadata", {})
            item = {"apiVersion": version, "kind": self.kinds[version][plural], **item}
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", _stamp(datetime.now(UTC)))
            self._version += 1
            metadata["resourceVersion"] = str(self._version)
            self.objects[version, plural, metadata.get("namespace", ""), metadata["name"]] = item
            return item

    def find(self, plural: str, namespace: str, name: str) -> Manifest:
        (found,) = (
            item
            for (_, of, where, called), item in self.objects.items()
            if (of, where, called) == (plural, namespace, name)
        )
        return found

    def names(self, plural: str, namespace: str) -> list[str]:
        return sorted(name for (_, of, where, name) in self.objects if (of, where) == (plural, namespace))

    def start_pods(
        self, owner: Manifest, template: Manifest, count: int, labels: Any, **status: Any
    ) -> list[Manifest]:
        """Pods of a job, as its controller makes them from the template.

        Args:
            labels: called with the index of a pod.
        """
        made: list[Manifest] = []
        meta = owner["metadata"]
        for index in range(count):
            own = labels(index)
            name = own.pop("name", f"{meta['name']}-{index}-{uuid.uuid4().hex[:5]}")
            pod = {
                "metadata": {
                    "name": name,
                    "namespace": meta["namespace"],
                    "labels": {**template.get("metadata", {}).get("labels", {}), **own},
                    "ownerReferences": [_owner(owner)],
                },
                "spec": copy.deepcopy(template["spec"]),
                "status": {"phase": "Pending", **copy.deepcopy(status)},
            }
            bare = {"apiVersion": "v1", "kind": "Pod", **{k: v for k, v in pod.items() if k != "status"}}
            if wrong := problems({**bare, "metadata": {"name": name}}, kubernetes=self.release):
                raise AssertionError(wrong)
            made.append(self.put("v1", "pods", pod))
        return made

    def log(self, pod: Manifest, instance: int = 0) -> Log:
        meta = pod["metadata"]
        container = pod["spec"]["containers"][0]["name"]
        return self.logs.setdefault((meta["namespace"], meta["name"], container, instance), Log())

    # --- what is asked -----------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, Any]:
        parts = urlsplit(target)
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        groups = self._who(headers.get("Authorization", ""))
        data = self._body(method, headers, body)
        asked = Asked(method, parts.path, query, data, groups)
        with self.lock:
            self.asked.append(asked)
            return 200, self._do(asked, headers)

    def _who(self, header: str) -> tuple[str, ...]:
        found = _TOKEN.fullmatch(header)
        try:
            address = (
                base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)).decode() if found else ""
            )
        except ValueError:
            address = ""
        parts = urlsplit(address)
        query = parse_qs(parts.query)
        signed = query.get("X-Amz-SignedHeaders", [""])[0].split(";")
        sts = re.fullmatch(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com", parts.hostname or "")
        key = query.get("X-Amz-Credential", [""])[0].partition("/")[0]
        if not sts or query.get("Action") != ["GetCallerIdentity"] or "x-k8s-aws-id" not in signed:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return self.groups.get(key, self.groups.get("*", (ADMIN,)))

    def _body(self, method: str, headers: Any, body: bytes) -> Any:
        if not body:
            return None
        wanted = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if headers.get("Content-Type") != wanted:
            raise StatusError(
                415, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                f"{wanted}",
            )  # fmt: skip
        try:
            return json.loads(body)
        except ValueError:
            raise StatusError(400, "BadRequest", "the object provided is unrecognized") from None

    def _do(self, asked: Asked, headers: Any) -> Any:
        place = _PATH.fullmatch(asked.path)
        version = (place["core"] or place["group"]) if place else ""
        if not place or place["plural"] not in self.kinds.get(version, {}):
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        plural, namespace, name = place["plural"], place["namespace"] or "", place["name"]
        group = version.partition("/")[0] if "/" in version else ""
        verb = {
            "GET": "get" if name else "list", "POST": "create", "PATCH": "patch",
            "DELETE": "delete" if name else "deletecollection",
        }[asked.method]  # fmt: skip
        resource = f"{plural}/{place['sub']}" if place["sub"] else plural
        self._check_right(asked.groups, verb, group, resource, namespace)
        if asked.method == "POST":
            return self._create(version, plural, namespace, asked)
        if not name:
            return self._list(version, plural, namespace, asked.query)
        item = self.objects.get((version, plural, namespace, name))
        if item is None:
            shown = f"{plural}.{group}" if group else plural
            raise StatusError(404, "NotFound", f'{shown} "{name}" not found')
        if place["sub"] == "log":
            return self._log(item, asked.query)
        if asked.method == "GET":
            return item
        if asked.method == "PATCH":
            _merge(item, asked.body)
            return self.put(version, plural, item)
        return self._delete(version, plural, item, asked)

    def _check_right(
        self, groups: tuple[str, ...], verb: str, group: str, resource: str, namespace: str
    ) -> None:
        if ADMIN in groups:
            return
        roles = {one["metadata"]["name"]: one["rules"] for one in self.rights if one["kind"] == "ClusterRole"}
        for one in self.rights:
            if one["kind"] != "RoleBinding" or one["metadata"]["namespace"] != namespace:
                continue
            if not {subject["name"] for subject in one["subjects"]} & set(groups):
                continue
            for rule in roles.get(one["roleRef"]["name"], []):
                if group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]:
                    return
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        raise StatusError(
            403, "Forbidden",
            f'{resource.partition("/")[0]} is forbidden: User "someone" cannot {verb} resource "{resource}" '
            f'in API group "{group}" {where}',
        )  # fmt: skip

    def _create(self, version: str, plural: str, namespace: str, asked: Asked) -> Manifest:
        item: Any = asked.body
        kind = self.kinds[version][plural]
        if not isinstance(item, dict) or (item.get("apiVersion"), item.get("kind")) != (version, kind):
            raise StatusError(
                400, "BadRequest", f"the object provided is unrecognized (must be of type {kind})"
            )
        meta = item.get("metadata") or {}
        name = str(meta.get("name", ""))
        if meta.get("namespace", namespace) != namespace:
            raise StatusError(
                400, "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            )  # fmt: skip
        if plural not in _CLUSTER_WIDE and ("v1", "namespaces", "", namespace) not in self.objects:
            raise StatusError(404, "NotFound", f'namespaces "{namespace}" not found')
        invalid = f'{kind} "{name}" is invalid'
        if not DNS_NAME.fullmatch(name):
            raise StatusError(422, "Invalid", f'{invalid}: metadata.name: Invalid value: "{name}"')
        if asked.query.get("dryRun", "All") != "All":
            raise StatusError(422, "Invalid", "dryRun: Unsupported value")
        if wrong := problems(item, kubernetes=self.release):
            raise StatusError(400, "BadRequest", f"strict decoding error: {wrong[0]}")
        if kind == "ConfigMap" and len(json.dumps(item)) > _LARGEST_CONFIG:
            raise StatusError(422, "Invalid", f"{invalid}: []: Too long: must have at most 1048576 bytes")
        if (version, plural, namespace, name) in self.objects:
            group = version.partition("/")[0] if "/" in version else ""
            shown = f"{plural}.{group}" if group else plural
            raise StatusError(409, "AlreadyExists", f'{shown} "{name}" already exists')
        made = copy.deepcopy(item)
        made["metadata"].setdefault("namespace", namespace)
        if asked.query.get("dryRun"):
            return made
        return self.put(version, plural, made)

    def _list(self, version: str, plural: str, namespace: str, query: dict[str, str]) -> Manifest:
        if "continue" in query:
            if query["continue"] not in self._pages:
                raise StatusError(410, "Expired", "The provided continue parameter is too old")
            found = self._pages.pop(query["continue"])
        else:
            found = [
                item
                for (of_version, of, where, _), item in sorted(self.objects.items())
                if (of_version, of) == (version, plural)
                and (not namespace or where == namespace)
                and _selected(item, query)
            ]
        most = int(query.get("limit", "0")) or len(found)
        metadata: Manifest = {"resourceVersion": str(self._version)}
        if found[most:]:
            metadata["continue"] = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
            self._pages[metadata["continue"]] = found[most:]
        # items of a list name no kind of their own
        items = [{k: v for k, v in one.items() if k not in ("apiVersion", "kind")} for one in found[:most]]
        kind = self.kinds[version][plural]
        return {"apiVersion": version, "kind": f"{kind}List", "metadata": metadata, "items": items}

    def _delete(self, version: str, plural: str, item: Manifest, asked: Asked) -> Manifest:
        meta, options = item["metadata"], asked.body or {}
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != meta["uid"]:
            raise StatusError(409, "Conflict", f"the UID in the precondition ({wanted}) does not match")
        policy = options.get("propagationPolicy") or asked.query.get("propagationPolicy") or "Background"
        if policy not in ("Foreground", "Background", "Orphan"):
            raise StatusError(422, "Invalid", "propagationPolicy: Unsupported value")
        key = (version, plural, meta.get("namespace", ""), meta["name"])
        if policy == "Foreground":
            meta["deletionTimestamp"] = _stamp(datetime.now(UTC))
            meta["finalizers"] = ["foregroundDeletion"]
            return item
        del self.objects[key]
        if policy == "Background":
            self._collect(meta["uid"])
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def collect_garbage(self) -> None:
        """What the garbage collector does: dependents of objects under deletion go, then they."""
        for key, item in list(self.objects.items()):
            if "foregroundDeletion" in item["metadata"].get("finalizers", ()):
                self._collect(item["metadata"]["uid"])
                self.objects.pop(key, None)

    def _collect(self, uid: str) -> None:
        for key, item in list(self.objects.items()):
            if any(one.get("uid") == uid for one in item["metadata"].get("ownerReferences") or []):
                self.objects.pop(key, None)
                self._collect(item["metadata"]["uid"])

    def _log(self, pod: Manifest, query: dict[str, str]) -> bytes:
        meta = pod["metadata"]
        there = [one["name"] for one in pod["spec"]["containers"]]
        container = query.get("container") or there[0]
        if "container" not in query and len(there) > 1:
            raise StatusError(
                400,
                "BadRequest",
                f"a container name must be specified for pod {meta['name']}, choose one of: {there}",
            )
        if container not in there:
            raise StatusError(400, "BadRequest", f"container {container} is not valid for pod {meta['name']}")
        for key in ("tailLines", "limitBytes"):
            if key in query and not (query[key].isdigit() and int(query[key]) >= (key == "limitBytes")):
                raise StatusError(422, "Invalid", f"{key}: Invalid value: {query[key]}")
        states = {one["name"]: one for one in pod.get("status", {}).get("containerStatuses", [])}
        state = states.get(container, {})
        restarts = state.get("restartCount", 0)
        instance = restarts - 1 if query.get("previous") == "true" else restarts
        if instance < 0:
            raise StatusError(
                400,
                "BadRequest",
                f'previous terminated container "{container}" in pod "{meta["name"]}" not found',
            )
        if (waiting := state.get("state", {}).get("waiting")) and query.get("previous") != "true":
            why = f'in pod "{meta["name"]}" is waiting to start: {waiting["reason"]}'
            raise StatusError(400, "BadRequest", f'container "{container}" {why}')
        log = self.logs.get((meta["namespace"], meta["name"], container, instance), Log())
        lines = log.lines
        if since := query.get("sinceTime"):
            # the API server hands the kubelet whole seconds
            start = datetime.fromisoformat(since).replace(microsecond=0)
            lines = [one for one in lines if one[0] >= start]
        if tail := query.get("tailLines"):
            lines = lines[len(lines) - min(int(tail), len(lines)) :]
        stamped = query.get("timestamps") == "true"
        text = "".join(f"{_nanos(at)} {line}\n" if stamped else f"{line}\n" for at, line in lines).encode()
        return text[: int(query["limitBytes"])] if "limitBytes" in query else text


def _owner(owner: Manifest) -> Manifest:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _nanos(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def _merge(item: Manifest, patch: Manifest) -> None:
    for key, value in patch.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict) and isinstance(item.get(key), dict):
            _merge(item[key], value)
        else:
            item[key] = value


def _selected(item: Manifest, query: dict[str, str]) -> bool:
    labels = item["metadata"].get("labels") or {}
    for part in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = part.partition("=")
        if key not in labels or ("=" in part and labels[key] != value.removeprefix("=")):
            return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        key, _, value = part.partition("=")
        found: Any = item
        for step in key.split("."):
            found = (found or {}).get(step)
        if str(found or "") != value.removeprefix("="):
            return False
    return True


@contextmanager
def serving(folder: Path, cluster: Cluster) -> Iterator[Cluster]:
    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                when = cluster.lose(Asked(self.command, self.path, {}, body, ()))
                if when == "before":
                    self.close_connection = True
                    return
                status, found = cluster.answer(self.command, self.path, self.headers, body)
                if when == "after":
                    self.close_connection = True
                    return
            except StatusError as error:
                status, found = error.code, error.status
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with tls_server(folder, Handler) as (cluster.endpoint, cluster.authority):
        yield cluster


__all__ = ["ADMIN", "CUSTOM", "TABLE", "Asked", "Cluster", "Log", "StatusError", "serving"]

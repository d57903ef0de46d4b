"""Checkov (PyPI, Apache-2.0) asked about pods: a judge that nobody here wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judges_python import answer

BASELINE = {
    "CKV_K8S_16": "privileged",
    "CKV_K8S_17": "hostPID",
    "CKV_K8S_18": "hostIPC",
    "CKV_K8S_19": "hostNetwork",
    "CKV_K8S_25": "added capabilities",
    "CKV_K8S_26": "hostPort",
    "CKV_K8S_27": "the socket of Docker",
    "CKV_K8S_39": "CAP_SYS_ADMIN",
}
"""Checks of Checkov for what the level `baseline` forbids, which it has no name for itself."""
RESTRICTED = {
    **BASELINE,
    "CKV_K8S_20": "allowPrivilegeEscalation",
    "CKV_K8S_23": "root containers",
    "CKV_K8S_28": "NET_RAW is not dropped",
    "CKV_K8S_29": "securityContext",
    "CKV_K8S_30": "securityContext of containers",
    "CKV_K8S_31": "seccomp",
    "CKV_K8S_37": "capabilities",
    "CKV_K8S_38": "a token of the API",
}


def failed(pods: Sequence[dict[str, Any]]) -> list[set[str]]:
    """Ids of the checks that each pod fails; one process for all. Skips where Checkov is not installed."""
    results: list[dict[str, list[str]]] = answer("pods.py", list(pods))
    for result in results:  # a check that no longer exists would find nothing
        assert {*RESTRICTED} <= {*result["failed"], *result["passed"]}, "Checkov lacks a check of the table"
    return [{*result["failed"]} for result in results]

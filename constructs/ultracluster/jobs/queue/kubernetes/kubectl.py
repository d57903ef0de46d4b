"""What `kubectl` is told, where it carries a terminal or a port into a pod: we speak no WebSockets.

It gets a configuration of its own, which names one cluster and holds no secret: the token comes from the AWS
CLI whenever it is needed (EKS User Guide, "Connect kubectl to an EKS cluster by creating a kubeconfig file").
Nobody's own configuration is read or written.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.wait.sessions_shell import missing_programs as programs_missing

PROGRAMS = ("kubectl", "aws")
CREDENTIAL = "eks get-token --output json"
"""Of the AWS CLI, with the Region and the cluster behind it."""
SHELL = "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh"


def missing_programs() -> str:
    """Return what is not on this machine, in a sentence; empty where all is."""
    missing = programs_missing(PROGRAMS)
    return missing and (
        f"{missing}: kubectl carries a shell in a pod, and its token comes from the AWS CLI. Install them, "
        "and try again"
    )


@contextmanager
def configuration(api: KubernetesApi, account: Account, namespace: str) -> Generator[Path]:
    """A file for `--kubeconfig`, as long as it is needed; only its owner can read it."""
    with tempfile.TemporaryDirectory(prefix="ultracluster-") as folder:
        file = Path(folder) / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(content(api, account, namespace)), encoding="utf-8")
        yield file


def content(api: KubernetesApi, account: Account, namespace: str) -> dict[str, object]:
    """The configuration: one cluster, one user, one context."""
    name = api.cluster
    words = [*CREDENTIAL.split(), "--region", account.region, "--cluster-name", name]
    profile = [{"name": "AWS_PROFILE", "value": account.profile}] if account.profile != "default" else None
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "aws",
            "args": words,
            "env": profile,
            "interactiveMode": "Never",
            "provideClusterInfo": False,
        }
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": api.endpoint, "certificate-authority-data": api.authority}}
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }


def shell_words(file: Path, pod: str, container: str) -> list[str]:
    """A terminal in a pod."""
    return [
        *_words(file),
        "exec",
        "--stdin",
        "--tty",
        pod,
        "--container",
        container,
        "--",
        "/bin/sh",
        "-c",
        SHELL,
    ]


def script_words(file: Path, pod: str, container: str, script: str) -> list[str]:
    """A script in a pod, which reads what is written to the command."""
    place = ["exec", "--stdin", pod, "--container", container]
    return [*_words(file), *place, "--", "/bin/sh", "-c", script]


def forward_words(file: Path, pod: str, ports: tuple[int, int]) -> list[str]:
    """A port of a pod's own 127.0.0.1, here."""
    here, there = ports
    return [*_words(file), "port-forward", "--address", "127.0.0.1", f"pod/{pod}", f"{here}:{there}"]


def child_environment() -> dict[str, str]:
    """Of the child: this one's, without a configuration that is somebody else's."""
    return {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}


def _words(file: Path) -> Sequence[str]:
    program = shutil.which("kubectl")
    if program is None:
        raise AccountError(missing_programs())
    return [program, "--kubeconfig", str(file)]


__all__ = [
    "child_environment",
    "configuration",
    "content",
    "forward_words",
    "missing_programs",
    "script_words",
    "shell_words",
]

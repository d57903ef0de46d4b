"""A MariaDB with a certificate of an authority of its own, and a slurmdbd that keeps its records there."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_database import end, free_ports, munge, path, says, start_mariadb, wait

TOOLS = ["openssl", "mariadbd", "mariadb-install-db"]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    folder: Path
    port: int
    client: list[str]
    """The command of a client that is its root, over a socket."""
    authority: Path
    """The certificate that its own is signed by, PEM."""

    def root(self, statements: str) -> str:
        """What statements of the server's root say, one row a line."""
        return subprocess.run(
            [*self.client, "--raw", "--skip-column-names", "-e", statements],
            capture_output=True,
            text=True,
            check=True,
        ).stdout


@contextlib.contextmanager
def tls_database(*options: str, host: str = "localhost") -> Iterator[Server]:
    """A server on a port of its own.

    Args:
        options: of `mariadbd`.
        host: whom its certificate is for.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        variables = {**os.environ, "PATH": path()}
        authority = certificates(folder, host)
        tls = [f"--ssl-{name}={folder / f'{file}.pem'}" for name, file in FILES.items()]
        (port,) = free_ports(1)
        client = start_mariadb(folder, _starter(stack, folder, variables), variables, port, *tls, *options)
        yield Server(folder, port, client, authority)


FILES = {"ca": "authority", "cert": "server", "key": "server-key"}


def certificates(folder: Path, host: str) -> Path:
    """Make an authority, and a server's certificate and key; the authority's certificate."""

    def openssl(*words: str | Path) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl(*new, "-keyout", "authority-key.pem", "-out", "authority.pem", "-subj", "/CN=Test authority")
    openssl(
        *new, "-CA", "authority.pem", "-CAkey", "authority-key.pem", "-keyout", "server-key.pem",
        "-out", "server.pem", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
        "-addext", "basicConstraints=critical,CA:FALSE",
    )  # fmt: skip
    (folder / "server-key.pem").chmod(0o644)  # its own user reads it
    return folder / "authority.pem"


@contextlib.contextmanager
def slurmdbd(server: Server, *, user: str, password: str, parameters: str = "") -> Iterator[Slurmdbd]:
    """A slurmdbd that logs in to the server.

    Args:
        parameters: `StorageParameters`; empty for none.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        variables = {**os.environ, "PATH": path(), "SLURM_CONF": str(folder / "slurm.conf")}
        start = _starter(stack, folder, variables)
        munge(folder, start, variables)
        (port,) = free_ports(1)
        name, own = socket.gethostname(), f"AuthType=auth/munge\nAuthInfo=socket={folder}/munge/socket\n"
        file = folder / "slurmdbd.conf"
        file.write_text(
            f"{own}DbdHost={name}\nDbdAddr=127.0.0.1\nDbdPort={port}\nSlurmUser=root\nDebugLevel=debug\n"
            f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={server.port}\n"
            f"StorageUser={user}\nStoragePass={password}\nPidFile={folder}/slurmdbd.pid\n"
            + (f"StorageParameters={parameters}\n" if parameters else "")
        )
        file.chmod(0o600)
        (folder / "slurm.conf").write_text(
            f"ClusterName=example\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\n{own}"
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
            f"AccountingStoragePass={folder}/munge/socket\nAccountingStoragePort={port}\n"
        )
        start("slurmdbd", "slurmdbd", "-D")
        yield Slurmdbd(variables, folder / "slurmdbd.log")


@dataclass(frozen=True, slots=True)
class Slurmdbd:
    """A started slurmdbd, which may not have reached its database."""

    variables: dict[str, str]
    log: Path

    def run(self, *command: str) -> str:
        """What `sacctmgr` says, once slurmdbd answers."""
        wait(lambda: says(["sacctmgr", "-n", "show", "cluster"], self.variables), self.log)
        return subprocess.run(
            ["sacctmgr", "-inP", *command], env=self.variables, capture_output=True, text=True, check=True
        ).stdout

    def logs(self, words: str) -> None:
        """Wait until the log has these words."""
        wait(lambda: words in self.log.read_text(errors="replace"), self.log)


def _starter(stack: contextlib.ExitStack, folder: Path, variables: dict[str, str]) -> Callable[..., None]:
    def start(name: str, *command: str | Path) -> None:
        log = (folder / f"{name}.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, start_new_session=True)
        stack.callback(end, process)

    return start

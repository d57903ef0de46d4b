"""Servers of munge and MariaDB for one test, in one folder, on ports of their own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from needs import need

TOOLS = ["slurmctld", "slurmdbd", "sacctmgr", "munged", "mariadbd", "mariadb-install-db"]


def needed() -> None:
    """Skip the test where slurm-wlm, slurmdbd or mariadb-server is not there, or nobody is root."""
    need(*TOOLS, root=True)


def munge(folder: Path, start: Callable[..., None], variables: dict[str, str]) -> None:
    home = folder / "munge"
    home.mkdir(mode=0o755)
    key = home / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    start(
        "munged", "munged", "--foreground", "--force", f"--socket={home / 'socket'}", f"--key-file={key}",
        f"--pid-file={home / 'pid'}", f"--log-file={home / 'log'}", f"--seed-file={home / 'seed'}",
    )  # fmt: skip
    wait(lambda: says(["munge", "-n", f"--socket={home / 'socket'}"], variables), folder / "munged.log")


def start_mariadb(
    folder: Path, start: Callable[..., None], variables: dict[str, str], port: int, *options: str
) -> list[str]:
    """Start a server below `folder`; the command of a client that is its root."""
    home, run = folder / "database", folder / "run"
    for place in (home, run):
        place.mkdir(mode=0o700)
    # which runs the tests; `mysql` may not be able to enter TMPDIR
    user = "--user=root"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", user, f"--datadir={home}"],
        check=True, capture_output=True, env=variables,
    )  # fmt: skip
    at = run / "socket"
    start(
        "mariadbd", "mariadbd", "--no-defaults", user, f"--datadir={home}", f"--socket={at}",
        f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={run / 'pid'}",
        "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
        "--innodb-flush-method=nosync", *options,
    )  # fmt: skip
    client = ["mariadb", "--no-defaults", f"--socket={at}", "--user=root"]
    wait(lambda: says([*client, "-e", "select 1"], variables), folder / "mariadbd.log")
    return client


def path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def says(command: list[str], variables: dict[str, str]) -> bool:
    return subprocess.run(command, capture_output=True, env=variables, check=False).returncode == 0


def wait(until: Callable[[], bool], log: Path, *, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"not ready after {seconds:g} s:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

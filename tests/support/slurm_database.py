"""A real slurmctld, slurmdbd and MariaDB for one test, in one folder, on ports of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TOOLS = ["slurmctld", "slurmdbd", "sacctmgr", "munged", "mariadbd", "mariadb-install-db"]
CLUSTER = "example"


def missing() -> list[str]:
    """What of slurm-wlm, slurmdbd and mariadb-server is not there; they want to be started by root."""
    programs = [tool for tool in TOOLS if not shutil.which(tool, path=path())]
    return programs if os.getuid() == 0 else [*programs, "root"]


@contextlib.contextmanager
def accounting() -> Iterator[dict[str, str]]:
    """Variables under which sacctmgr speaks to accounting that knows one cluster with GPUs."""
    ports: dict[str, int] = dict(zip(("database", "slurmdbd", "slurmctld"), free_ports(3), strict=True))
    variables = {**os.environ, "PATH": path()}
    with contextlib.ExitStack() as stack:
        # not pytest's own: the database's user must reach it
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        variables["SLURM_CONF"] = str(folder / "slurm.conf")

        def start(name: str, *command: str | Path) -> None:
            log = (folder / f"{name}.log").open("wb")
            process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, start_new_session=True)
            stack.callback(end, process)

        munge(folder, start, variables)
        _database(folder, start, variables, ports["database"])
        _write_slurm(folder, ports)
        start("slurmdbd", "slurmdbd", "-D")
        wait(lambda: says(["sacctmgr", "-n", "show", "cluster"], variables), folder / "slurmdbd.log")
        start("slurmctld", "slurmctld", "-D")
        wait(
            lambda: (
                "gres|gpu|" in _output(["sacctmgr", "-nP", "show", "tres"], variables)
                and CLUSTER in _output(["sacctmgr", "-nP", "show", "cluster"], variables)
            ),
            folder / "slurmctld.log",
        )
        yield variables


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


def _database(folder: Path, start: Callable[..., None], variables: dict[str, str], port: int) -> None:
    client = start_mariadb(folder, start, variables, port)
    rights = "".join(
        f"create user slurm@'{host}' identified by 'secret'; grant all on slurm_acct_db.* to slurm@'{host}';"
        for host in ("localhost", "127.0.0.1")
    )
    subprocess.run(
        [*client, "-e", f"create database slurm_acct_db; {rights}"],
        check=True, capture_output=True, env=variables,
    )  # fmt: skip


def _write_slurm(folder: Path, ports: dict[str, int]) -> None:
    host = socket.gethostname()
    munge = f"AuthType=auth/munge\nAuthInfo=socket={folder / 'munge' / 'socket'}\n"
    state = folder / "state"
    state.mkdir()
    dbd = folder / "slurmdbd.conf"
    dbd.write_text(
        f"{munge}DbdHost={host}\nDbdAddr=127.0.0.1\nDbdPort={ports['slurmdbd']}\nSlurmUser=root\n"
        f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={ports['database']}\n"
        f"StorageUser=slurm\nStoragePass=secret\nPidFile={folder / 'slurmdbd.pid'}\n"
    )
    dbd.chmod(0o600)
    (folder / "slurm.conf").write_text(
        f"ClusterName={CLUSTER}\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n{munge}"
        f"SlurmctldPort={ports['slurmctld']}\nStateSaveLocation={state}\n"
        f"SlurmctldPidFile={folder / 'slurmctld.pid'}\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_Core\nGresTypes=gpu\nPriorityType=priority/multifactor\n"
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
        # to slurmdbd this is munge's socket
        f"AccountingStoragePass={folder / 'munge' / 'socket'}\n"
        f"AccountingStoragePort={ports['slurmdbd']}\nAccountingStorageTRES=gres/gpu\n"
        "AccountingStorageEnforce=associations,limits,qos,safe\nPriorityWeightFairshare=100000\n"
        "NodeName=n[1-4] NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 Gres=gpu:8 State=FUTURE\n"
        "PartitionName=gpu Nodes=ALL Default=YES\n"
    )


def path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _output(command: list[str], variables: dict[str, str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False).stdout


def says(command: list[str], variables: dict[str, str]) -> bool:
    return subprocess.run(command, capture_output=True, env=variables, check=False).returncode == 0


def wait(until: Callable[[], bool], log: Path, *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"not ready after {seconds:g} s:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.2)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

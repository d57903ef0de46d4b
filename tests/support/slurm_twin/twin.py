"""A real Slurm on one machine: a controller and nodes in namespaces of their own, with fake GPUs.

    with Twin(nodes=4) as twin:
        job = twin.submit("#!/bin/bash\nsrun hostname", "--nodes=4", user="alice")
        twin.wait(lambda: twin.job(job)["job_state"] == ["COMPLETED"], "the job to end")

The nodes are n1, n2, ...; each boots from the same Debian root, over which it has an own disk in memory.
/etc/slurm, /home and /shared are the same on all of them. What a twin starts ends with it: its first process
gets SIGKILL when the process that made it ends, however it ends. Machines boot once; `fresh` gives them
another Slurm.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from project import ROOT
from slurm_twin import cgroups, configuration, root
from slurm_twin.configuration import ADDRESS, CONTROLLER, Generated, Group, Shape

OWN_NAMESPACES = 16
"""Up to this number of nodes each has its own; above, all share the controller's."""
UMASK = 0o022
"""Of the machines, whatever that of the tests is."""
PATIENCE = 600
"""Seconds until something that must come is given up: the machine may have much else to do."""
SPARED = 4
"""How many times as long as a look the pause behind it is."""
PLUGSTACK = "optional auto_resume.so\n"
"""That of HyperPod's stand-in."""
DAEMONS = "slurm(ctld|d|scriptd|stepd)(-wlm)?"
"""Names of processes: one that was reconfigured has its file's."""
CLEAR = f"""
pkill -9 -x '{DAEMONS}'; pkill -9 --euid {{users}}
while pgrep -x '{DAEMONS}' >/dev/null; do sleep 0.05; done
rm -rf /var/lib/slurm/slurmctld/* /var/spool/slurmd/* /var/log/slurm/slurmctld.log /var/log/slurm/slurmd.log
find /home /shared -mindepth 2 -delete; find /shared -mindepth 1 -delete
"""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = [
    f"--{name}"
    for name in ("mount", "uts", "net", "ipc", "pid", "cgroup", "time")
    if (Path("/proc/self/ns") / {"mount": "mnt"}.get(name, name)).exists()
]
HERE = Path(__file__).parent


@dataclass(frozen=True)
class NodeState:
    """Attributes:
    states: such as {"IDLE", "DRAIN"}.
    reason: empty where there is none.
    booted: when the boot began with which it registered last, in seconds since 1970; a second more or less
        with each registration, and not compared.
    """

    states: frozenset[str]
    reason: str
    comment: str
    booted: int = field(compare=False)


class Twin:
    """See the module; a context manager.

    Args:
        nodes: their number; see `OWN_NAMESPACES`.
        conf: keys of slurm.conf that win over all others.
        generated: what the project generates for a cluster: settings, partitions, and what nodes have.
        lines: further lines of slurm.conf, such as partitions.
        topology_yaml: the text of topology.yaml.
        topology_conf: the text of topology.conf.
        accounting: with MariaDB and slurmdbd.
        users: accounts on every machine, with user ids from 2001 on and a home.
        boot: a script that each node runs as root when it boots, before slurmd starts.
        gpus: character devices /dev/nvidia0, ... on each node, where nothing is generated.
        own: whether each node has its own namespaces; by default up to `OWN_NAMESPACES` nodes.
        configless: nodes fetch Slurm's files from slurmctld, as HyperPod's do; also where a generated prolog
            has a name and no path.
        version: of Slurm; see `root.RELEASES`.
        plugstack: the text of plugstack.conf.
        host: machines see /usr of the machine that runs the twin at /host/usr, and cannot write there.
    """

    def __init__(
        self,
        nodes: int = 4,
        conf: Mapping[str, str] | None = None,
        *,
        generated: Generated | None = None,
        lines: Sequence[str] = (),
        topology_yaml: str | None = None,
        topology_conf: str | None = None,
        accounting: bool = False,
        users: Sequence[str] = ("alice", "bob"),
        boot: str = "",
        gpus: int = 8,
        gpu_type: str = "h100",
        cpus: int = 8,
        configless: bool = False,
        own: bool | None = None,
        version: str = "26.05",
        plugstack: str = PLUGSTACK,
        host: bool = False,
    ) -> None:
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.own = nodes <= OWN_NAMESPACES if own is None else own
        self.accounting, self.users = accounting, list(users)
        self._conf, self._lines = dict(conf or {}), list(lines)
        self._group = Group(tuple(self.nodes), gpus=gpus, gpu_type=gpu_type, cpus=cpus)
        self.version = version
        self._generate(generated)
        self._topology = {"topology.yaml": topology_yaml, "topology.conf": topology_conf}
        self._boot, self._plugstack, self._host = boot, plugstack, host
        # such a name has meaning only where slurmctld sends the file
        by_name = any("/" not in self._generated.get(key, "/") for key in ("Prolog", "Epilog"))
        self._configless = configless or by_name
        self._stack = contextlib.ExitStack()
        self._outer = 0

    def _generate(self, generated: Generated | None) -> None:
        """Settings, nodes and partitions that follow from what the project generates."""
        self._generated: dict[str, str] = {}
        self._groups, self._partitions = [self._group], [configuration.PARTITION]
        if generated:
            lines = generated.lines(self.version, service=True, accounting=self.accounting)
            self._generated = dict(line.split("=", 1) for line in lines)
            self._groups = configuration.groups_of(generated, self.nodes)
            self._partitions = configuration.partition_lines(generated, self._groups)

    # ---- its life

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.root = root.root_of(self.version)
            self.cgroups = stack.enter_context(cgroups.lent())
            stack.callback(self._end)
            self._begin()
            self._stack = stack.pop_all()
        try:
            self._await_cluster()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def shape(self) -> Shape:
        return Shape(self._groups, self.own, self.cgroups.mode, self._partitions)

    def fresh(
        self,
        conf: Mapping[str, str] | None = None,
        *,
        generated: Generated | None = None,
        topology_yaml: str | None = None,
        topology_conf: str | None = None,
        plugstack: str = PLUGSTACK,
        shared: str = "",
    ) -> Self:
        """The same machines with another Slurm, as `__init__` has it: without jobs, and with empty homes.

        Where nodes have an own namespace. What else a test has put on a machine stays there.
        """
        self._conf, self._plugstack = dict(conf or {}), plugstack
        self._topology = {"topology.yaml": topology_yaml, "topology.conf": topology_conf}
        self._group = replace(self._group, shared=shared)
        self._generate(generated)
        for machine in (CONTROLLER, *self.nodes):
            self.on(machine, CLEAR.format(users=",".join(self.users)), check=False)
            for path, text in configuration.programs(self._generated).items():
                if not path.startswith("/etc/slurm/"):
                    self.put(machine, path, text, 0o755)
        self._write_slurm()
        self.start("slurmctld")
        for node in self.nodes:
            self.start("slurmd", node)
        self.wait(lambda: self.up() == len(self.nodes), "all nodes to be idle")
        return self

    def _begin(self) -> None:
        self.folder = root.cache() / "at"
        machines = [CONTROLLER, *self.nodes] if self.own else [CONTROLLER]
        addresses = {CONTROLLER: ADDRESS} | {name: self.shape.address(name) for name in self.nodes}
        names = [
            f"{name}={','.join([addresses[name], *map(str, self.cgroups.of(name))])}" for name in machines
        ]
        # ends with this process, and everything in its process namespace with it
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL",
             "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
             "sh", HERE / "twin.sh", self.folder, self.root, *names],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, umask=UMASK,
            env=os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{PATH}"},
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout and self._process.stderr
        first = self._process.stdout.readline().decode().strip()
        if not first.isdigit():
            self._process.kill()
            raise root.NoTwinError(f"no namespaces here: {self._process.stderr.read().decode().strip()}")
        self._outer = int(first)
        self.work = Path(f"/proc/{self._outer}/root") / self.folder.relative_to("/")
        before = os.umask(UMASK)
        try:
            self._write_common()
        finally:
            os.umask(before)
        self._go()
        if len(self.nodes) <= OWN_NAMESPACES:
            self._go()

    def _go(self) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def _end(self) -> None:
        process = getattr(self, "_process", None)
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        # the namespace is gone when its first process is
        deadline = time.monotonic() + PATIENCE
        while self._outer and Path(f"/proc/{self._outer}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _write_common(self) -> None:
        """What all machines have from the start: accounts, names, keys, Slurm's files, our scripts."""
        common, shared = self.work / "common", self.work / "shared"
        ids = {
            row.split(":")[0]: row.split(":") for row in (self.root / "etc/passwd").read_text().splitlines()
        }

        def write(path: Path, text: str | bytes, mode: int = 0o644, owner: str = "root") -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            path.chmod(mode)
            os.chown(path, int(ids[owner][2]), int(ids[owner][3]))

        etc = common / "etc"
        for kind in ("passwd", "group", "shadow"):
            lower = (self.root / "etc" / kind).read_text()
            mode = 0o640 if kind == "shadow" else 0o644
            write(etc / kind, configuration.accounts(lower, self.users, kind), mode)
        write(etc / "hosts", configuration.hosts(self.shape))
        write(etc / "machine-id", "")  # each makes its own
        write(etc / "munge/munge.key", os.urandom(1024), 0o400, "munge")
        (etc / "munge").chmod(0o700)
        os.chown(etc / "munge", int(ids["munge"][2]), int(ids["munge"][3]))
        write(etc / "twin/init", (HERE / "init").read_text())
        write(etc / "twin/gpus", "".join(f"{name} {gpus}\n" for name, gpus in self.shape.gpus.items()))
        if self._configless:
            write(etc / "twin/configless", "")
        if self._host:
            write(etc / "twin/host", "")
        if self._boot:
            write(etc / "twin/boot", self._boot, 0o755)
        # the machine's first process ends, and the machine boots again
        write(common / "usr/sbin/reboot", "#!/bin/sh\nkill -TERM 1\n", 0o755)
        shutil.copytree(
            ROOT / "lifecycle_scripts", common / "opt/ultracluster/scripts",
            ignore=lambda folder, names: names if Path(folder).name == "releases" else ["__pycache__"],
        )  # fmt: skip
        for index, user in enumerate(self.users):
            home = shared / "home" / user
            home.mkdir(parents=True, mode=0o750)
            os.chown(home, 2001 + index, 2001 + index)
        (shared / "home").mkdir(exist_ok=True)
        (shared / "shared").mkdir()
        (shared / "shared").chmod(0o1777)
        self._slurm = shared / "etc_slurm"
        self._slurm.mkdir()
        for path, text in configuration.programs(self._generated).items():
            if not path.startswith("/etc/slurm/"):
                write(common / path.lstrip("/"), text, 0o755)
        if self.accounting:
            write(self._slurm / "slurmdbd.conf", configuration.slurmdbd_conf(), 0o600, "slurm")
        self._write_slurm()

    def _write_slurm(self) -> None:
        """What slurmctld and slurmd read."""
        files = {
            Path(path).name: text
            for path, text in configuration.programs(self._generated).items()
            if path.startswith("/etc/slurm/")
        }
        files |= {
            "gres.conf": configuration.gres_conf(self.shape),
            "cgroup.conf": configuration.cgroup_conf(self.shape),
            "plugstack.conf": self._plugstack,
        }
        for name, text in files.items():
            (self._slurm / name).write_text(text)
            (self._slurm / name).chmod(0o644 if name.endswith(".conf") else 0o755)
        self._write_slurm_conf()

    def _write_slurm_conf(self) -> None:
        text = configuration.slurm_conf(self.shape, self._generated, self._settings(), self.accounting)
        (self._slurm / "slurm.conf").write_text("\n".join([text.rstrip("\n"), *self._lines, ""]))
        (self._slurm / "slurm.conf").chmod(0o644)
        for name, content in self._topology.items():
            (self._slurm / name).unlink(missing_ok=True)
            if content is not None:
                (self._slurm / name).write_text(content)
                (self._slurm / name).chmod(0o644)

    def _settings(self) -> dict[str, str]:
        return ({"SlurmctldParameters": "enable_configless"} if self._configless else {}) | self._conf

    def _await_cluster(self) -> None:
        self.wait(lambda: self.ready(CONTROLLER), "the controller to boot")
        if self.accounting:
            self._start_database()
        self.start("slurmctld")
        if self.own:
            if len(self.nodes) > OWN_NAMESPACES:
                self._go()
            for name in self.nodes:
                self.wait(lambda name=name: self.ready(name), f"{name} to boot")
        else:
            names = " ".join(self.nodes)
            self.run(f"mkdir -p /var/spool/slurmd; for n in {names}; do slurmd -N $n || exit; done")
        self.wait(lambda: self.up() == len(self.nodes), "all nodes to be idle")

    def up(self) -> int:
        """Nodes that can take a job now."""
        done = self.run("sinfo --noheader --Node --format='%N %t'", check=False)
        return sum(line.split()[1] == "idle" for line in set(done.stdout.splitlines()))

    def _start_database(self) -> None:
        data = "/var/lib/mysql"
        self.run(
            f"install -d -o mysql -g mysql {data} /run/mysqld; rm -rf {data}/*;"
            f"mariadb-install-db --no-defaults --user=mysql --datadir={data} --innodb-log-file-size=8M"
            " >/dev/null 2>&1;"
            f"setsid mariadbd --no-defaults --user=mysql --datadir={data} --socket=/run/mysqld/mysqld.sock"
            " --pid-file=/run/mysqld/pid --bind-address=127.0.0.1 --innodb-buffer-pool-size=64M"
            " --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900"
            " --innodb-snapshot-isolation=OFF"
            " </dev/null >/var/log/mariadb.log 2>&1 &"
        )
        self._await_answer("mariadb -e 'select 1'")
        rights = "".join(
            f"create user slurm@'{host}' identified by 'secret';"
            f"grant all on slurm_acct_db.* to slurm@'{host}';"
            for host in ("localhost", "127.0.0.1")
        )
        self.run(f"mariadb -e {shlex.quote(f'create database slurm_acct_db; {rights}')}")
        self.start("slurmdbd")
        self._await_answer("sacctmgr -n show cluster")

    # ---- commands in it

    def run(
        self, command: str, user: str = "root", check: bool = True, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """The command of a shell on the controller's machine; with `check`, AssertionError where it fails."""
        return self.on(CONTROLLER, command, user, check, **more)

    def on(
        self,
        machine: str,
        command: str,
        user: str = "root",
        check: bool = True,
        *,
        stdin: str = "",
        seconds: float = PATIENCE,
    ) -> subprocess.CompletedProcess[str]:
        """The command of a shell on a machine, as that user, from his home."""
        done = subprocess.run(
            self.enter(machine, user, "bash", "-c", command),
            input=stdin, capture_output=True, text=True, check=False, timeout=seconds, umask=UMASK,
            env={"PATH": PATH, "LANG": "C.UTF-8"},
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(
                f"{machine}: {command}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def enter(self, machine: str, user: str, *command: str) -> list[str]:
        """The command line that runs this on a machine."""
        into = ["nsenter", f"--target={self.pid(machine)}", *NAMESPACES, "--root"]
        if user == "root":
            return [*into, "env", "--chdir=/root", "HOME=/root", "USER=root", *command]
        home = f"/home/{user}"
        as_user = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={user}",
            "--init-groups",
            "--reset-env",
            "env",
            f"PATH={PATH}",
        ]
        return [*into, *as_user, "env", f"--chdir={home}", *command]

    def pid(self, machine: str) -> int:
        """The machine's first process, as this machine numbers it.

        Raises:
            OSError, ValueError: it boots. Until it has a root of its own, a command for it would run on the
                machine that runs the twin, and read that one's boot id.
        """
        if not self.own:
            machine = CONTROLLER
        number = int((self.work / "pid" / machine).read_text())
        if not Path(f"/proc/{number}/root/etc/twin/init").exists():
            raise ProcessLookupError(f"{machine} boots")
        return number

    def ready(self, machine: str) -> bool:
        """Whether it has booted, slurmd included."""
        try:
            return Path(f"/proc/{self.pid(machine)}/root/run/twin/ready").exists()
        except (OSError, ValueError):
            if self._process.poll() is not None:
                raise AssertionError(f"the twin ended:\n{self.logs()}") from None
            return False

    # ---- what Slurm says

    def state(self, node: str) -> NodeState:
        return self.states(node)[node]

    def states(self, *nodes: str) -> dict[str, NodeState]:
        """Of these nodes or, without any, of all: at one moment."""
        found = json.loads(self.run(f"scontrol --json show node {','.join(nodes)}").stdout)["nodes"]
        return {
            one["name"]: NodeState(
                frozenset(one["state"]), one["reason"], one["comment"], one["boot_time"]["number"]
            )
            for one in found
        }

    def job(self, job: int) -> dict[str, Any]:
        """`scontrol show job --json` of one; `job_state` is a list."""
        return json.loads(self.run(f"scontrol --json show job {job}").stdout)["jobs"][0]

    def submit(self, script: str, *options: str, user: str = "alice") -> int:
        done = self.run(f"sbatch --parsable {shlex.join(options)}", user, stdin=script)
        return int(done.stdout.split(";")[0])

    def wait(self, done: Callable[[], object], what: str = "it") -> None:
        """Until it is true. Most looks start four processes, so what takes longer is looked at less often.

        Raises:
            TimeoutError: with the last lines of all logs.
        """
        start = time.monotonic()
        while True:
            began = time.monotonic()
            if done():
                return
            if began > start + PATIENCE:
                raise TimeoutError(f"waited {PATIENCE} s for {what}\n{self.logs()}")
            now = time.monotonic()
            time.sleep(min(max(0.1, SPARED * (now - began), (now - start) / 8), 1))

    def logs(self, lines: int = 15) -> str:
        """The ends of the logs of all machines that have any."""
        found: list[str] = []
        machines = [CONTROLLER, *self.nodes[:4]] if self.own else [CONTROLLER]
        for machine in machines:
            with contextlib.suppress(OSError, ValueError):
                at = Path(f"/proc/{self.pid(machine)}/root")
                files = [
                    *sorted((at / "var/log/slurm").glob("*.log")),
                    *sorted((at / "run/twin").glob("*.log")),
                ]
                for file in files[:6]:
                    if text := file.read_text(errors="replace").splitlines()[-lines:]:
                        found += [f"--- {machine} {file.relative_to(at)}", *text]
        with contextlib.suppress(OSError):
            for file in (self.work / "log").iterdir():
                if text := file.read_text():
                    found += [f"--- boot of {file.name}", text]
        return "\n".join(found)

    # ---- what happens to it

    def put(self, machine: str, path: str, content: str | bytes, mode: int = 0o644) -> None:
        """A file that only this machine has; what was there is hidden until `replace`."""
        quoted = shlex.quote(path)
        command = (
            f'mkdir -p "$(dirname {quoted})" && cat >{quoted}.new && '
            f"chmod {mode:o} {quoted}.new && mv -f {quoted}.new {quoted}"
        )
        subprocess.run(
            self.enter(machine, "root", "sh", "-c", command),
            input=content.encode() if isinstance(content, str) else content, check=True, umask=UMASK,
            env={"PATH": PATH},
        )  # fmt: skip

    def journal(self, node: str, line: str, **fields: str) -> None:
        """A line of the kernel, as `journalctl -k` shows it on that node when this ends."""
        number = time.time_ns()
        boot = Path(f"/proc/{self.pid(node)}/root/run/boot_id").read_text().strip().replace("-", "")
        entry = {
            "__REALTIME_TIMESTAMP": str(number // 1000),
            "__MONOTONIC_TIMESTAMP": str(time.monotonic_ns() // 1000),
            "_BOOT_ID": boot,
            "_TRANSPORT": "kernel",
            "_HOSTNAME": node,
            "SYSLOG_IDENTIFIER": "kernel",
            "SYSLOG_FACILITY": "0",
            "PRIORITY": "3",
            "MESSAGE": line,
            "TWIN_LINE": str(number),
        } | fields
        text = "".join(f"{key}={value}\n" for key, value in entry.items())
        self.on(node, "cat >/run/twin/journal", stdin=f"{text}\n")
        read = f"journalctl --quiet --lines=1 --output=cat TWIN_LINE={number}"
        self.wait(lambda: self.on(node, read, check=False).stdout, f"the journal of {node} to have {line}")

    def configure(self, conf: Mapping[str, str] | None = None, **files: str | None) -> None:
        """Changes keys of slurm.conf, or writes files: `topology_yaml=`, `topology_conf=`; no reload."""
        self._conf |= conf or {}
        self._topology |= {name.replace("_", "."): text for name, text in files.items()}
        self._write_slurm_conf()

    def reconfigure(self) -> None:
        """`scontrol reconfigure`, until the controller answers again."""
        self.run("scontrol reconfigure")
        self._await_answer("scontrol ping")

    def kill(self, daemon: str, machine: str = CONTROLLER, signal: int = 9) -> None:
        """Kills the daemon on one machine and waits until it is gone.

        With accounting, a slurmctld that has not yet saved its usage file (each five minutes, or by
        `reconfigure`) refuses to start again: reconfigure first.
        """
        name = daemon if self.own or daemon != "slurmd" else f"slurmd.{machine}"
        self.on(
            machine,
            f"pid=$(cat /run/{name}.pid 2>/dev/null || pgrep -x {daemon}) && kill -{signal} $pid && "
            'while [ -e "/proc/$pid" ]; do sleep 0.05; done',
        )

    def start(self, daemon: str, machine: str = CONTROLLER) -> None:
        """Starts slurmctld, slurmdbd or slurmd, and waits until slurmctld answers."""
        server = "--conf-server=ctl" if daemon == "slurmd" and self._configless else ""
        # a daemon that goes to the background holds our pipes otherwise
        self.on(machine, f"{daemon} {server} </dev/null >>/run/twin/{daemon}.log 2>&1")
        if daemon == "slurmctld":
            self._await_answer("scontrol ping")

    def _await_answer(self, command: str) -> None:
        said = ""

        def answers() -> bool:
            nonlocal said
            done = self.run(command, check=False)
            said = done.stdout + done.stderr
            return done.returncode == 0

        try:
            self.wait(answers, f"an answer to {command}")
        except TimeoutError as error:
            raise TimeoutError(f"{command}: {said}\n{error}") from None

    def reboot(self, node: str) -> None:
        """The machine's processes die; it boots again from its disk.

        Its jobs end, and slurmctld takes it for DOWN with "Node unexpectedly rebooted", unless the reboot
        was ordered by `scontrol reboot` or ReturnToService is 2.
        """
        self._boot_again(node)

    def replace(self, node: str) -> None:
        """Another machine of the same name and address, with an empty disk; a service returns it to work.

        What is drained stays drained.
        """
        (self.work / "fresh" / node).touch()
        self._boot_again(node)
        self.wait(lambda: self.registered(node), f"{node} to register")
        if "unexpectedly rebooted" in self.state(node).reason:
            self.run(f"scontrol update node={node} state=resume")

    def registered(self, node: str) -> bool:
        """Whether slurmctld has heard of it since it booted."""
        up = float(self.on(node, "cut -d ' ' -f 1 /proc/uptime").stdout)
        return time.time() - self.state(node).booted <= up + 2

    def _boot_again(self, node: str) -> None:
        before = self.pid(node)
        os.kill(before, 9)

        def again() -> bool:
            with contextlib.suppress(OSError, ValueError):
                return self.pid(node) != before and self.ready(node)
            return False

        self.wait(again, f"{node} to boot again")

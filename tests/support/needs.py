"""What tests need beside Python's packages, by the Debian package that has it.

A test is skipped by `need`, whose reason ends with the command that enables it; the last line of a run adds
these up. `.ci/run` installs what `python3 tests/support/needs.py` prints: what is not on the machine yet.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence

PACKAGES = {
    "amtool": "prometheus-alertmanager",
    "aws": "awscli",
    "chroot": "coreutils",
    "chromium": "chromium",
    "curl": "curl",
    "debootstrap": "debootstrap",
    "dpkg": "dpkg",
    "dpkg-deb": "dpkg",
    "gpg": "gnupg",
    "gpg-agent": "gnupg",
    "ip": "iproute2",
    "ip6tables": "iptables",
    "iptables": "iptables",
    "iptables-restore": "iptables",
    "iptables-save": "iptables",
    "kubectl": "kubernetes-client",
    "less": "less",
    "logrotate": "logrotate",
    "make": "make",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mount": "mount",
    "munged": "munge",
    "nft": "nftables",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
    "sacctmgr": "slurm-wlm",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "sbatch": "slurm-wlm",
    "sinfo": "slurm-wlm",
    "squeue": "slurm-wlm",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
}
"""Debian's package by program."""
FILES = {
    "/usr/lib/python3/dist-packages/torch": "python3-torch",
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": "fonts-dejavu-core",
}
"""Debian's package by a file of it that is no program."""
SETUP = "make setup-dev"
ROOT = "sudo"
_INSTALL = "apt-get install "


def missing(*names: str, root: bool = False) -> str:
    """Why a test that needs these cannot run here, with the commands that enable it; empty where it can.

    Args:
        names: programs of `PACKAGES`, or packages of `FILES`.
        root: whether the test must be run by root.
    """
    unknown = set(names) - PACKAGES.keys() - set(FILES.values())
    assert not unknown, f"add {unknown} to PACKAGES of tests/support/needs.py"
    absent = [name for name in names if not _here(name)]
    commands = [f"{_INSTALL}{' '.join(sorted({_package(name) for name in absent}))}"] if absent else []
    if root and os.geteuid() != 0:
        absent.append("root")
        commands.append(ROOT)
    return _reason(", ".join(absent), commands) if absent else ""


def need(*names: str, root: bool = False) -> None:
    """Skip the test where one of these is not there. See `missing`."""
    if why := missing(*names, root=root):
        _skip(why)


def path_of(name: str, *others: str) -> str:
    """Path of a program of `PACKAGES`, or of another that does the same; the test is skipped without it."""
    if not (found := next((path for one in (name, *others) if (path := shutil.which(one))), "")):
        need(name)
    return found


def need_setup(what: str, here: object) -> None:
    """Skip the test where `here` is false: what `make setup-dev` installs is not there."""
    if not here:
        _skip(without_setup(what))


def without_setup(what: str) -> str:
    """The reason of a skip where `make setup-dev` has not installed something."""
    return _reason(what, [SETUP])


def last_line(reasons: Sequence[str]) -> str:
    """Of a run: how many tests were skipped, for these reasons, and the command that enables them."""
    packages: set[str] = set()
    commands: set[str] = set()
    others: list[str] = []
    for reason in reasons:
        if not (found := re.search(r" is not here \[(.*)\]$", reason)):
            others.append(reason)
        for command in found[1].split("; ") if found else []:
            if command.startswith(_INSTALL):
                packages.update(command.removeprefix(_INSTALL).split())
            else:
                commands.add(command)
    parts = [f"sudo {_INSTALL}{' '.join(sorted(packages))}"] if packages else []
    parts += [SETUP] if SETUP in commands else []
    parts += ["sudo make test"] if ROOT in commands else []
    line = f"{len(reasons)} skipped"
    if parts:
        line += f"; run them with: {' && '.join(parts)}"
    if others:
        count = "" if len(others) == len(reasons) else f"{len(others)} of them "
        line += f"; {count}for what no package brings: {' | '.join(dict.fromkeys(others))}"
    return line


def _reason(what: str, commands: list[str]) -> str:
    return f"{what} is not here [{'; '.join(commands)}]"


def _package(name: str) -> str:
    return PACKAGES.get(name, name)


def _here(name: str) -> bool:
    if name in PACKAGES:
        return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is not None
    return any(os.path.exists(file) for file, package in FILES.items() if package == name)  # noqa: PTH110


def _skip(why: str) -> None:
    import pytest  # not where CI asks what to install

    pytest.skip(why)


if __name__ == "__main__":
    absent = {package for name, package in PACKAGES.items() if not _here(name)}
    print(*sorted(absent | {package for package in FILES.values() if not _here(package)}))  # noqa: T201

"""Tests under the Pythons of newer Debians, in the roots of the Slurm twin: quick ones, or the whole suite.

`make quick-pythons` writes nothing to a root: the checkout and the packages lie over its `/mnt`, in mounts
that end with it. `make test-python` runs `make test` in a copy of the newest root, in a clone of it:
it installs what it needs as on a fresh machine, from Debian, PyPI and npm.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from debian_root import ALONE
from project import ROOT
from slurm_twin.root import RELEASES, NoTwinError, root_of

PACKAGES = ROOT / "build" / "pythons"
LOCK = ROOT / "requirements-quick.lock"
INSIDE = """
mount --bind "$1" "$0/mnt" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && shift &&
exec chroot "$0" sh -c 'cd /mnt && exec "$@"' sh "$@"
"""
WHOLE = """
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" &&
exec chroot "$0" sh -euc 'cd /suite
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq -o Acquire::Check-Valid-Until=false
set -- "$@" ca-certificates git make "$1-venv" $("$1" tests/support/needs.py)
apt-get install -y -qq --no-install-recommends $(printf "%s\n" "$@" | tail -n +3) >/dev/null
exec make test PYTHON="$1" ARGS="$2"' sh "$@"
"""
SETTINGS = ("etc/pip.conf", "root/.config/pip", "root/.npmrc")
"""How this machine reaches PyPI and npm."""


def whole(arguments: list[str]) -> int:
    """Run `make test`, of what is committed, under the newest Python; `build/pythons/root` stays."""
    try:
        root = root_of(max(RELEASES))
    except NoTwinError as error:
        print(f"no newer Python: {error}")
        return 2
    copy = PACKAGES / "root"
    shutil.rmtree(copy, ignore_errors=True)
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", "--reflink=auto", root, copy], check=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, copy / "suite"], check=True)
    for setting in SETTINGS:
        if (own := Path("/") / setting).exists():
            (copy / setting).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "--archive", "--dereference", own, copy / setting], check=True)
    python = _newest_in(root)
    print(f"Python {python.removeprefix('python')}", flush=True)
    variables = {
        key: os.environ[key] for key in os.environ if key.startswith(("PIP_", "NPM_", "npm_config_"))
    }
    variables |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    inside = [*ALONE, "sh", "-c", WHOLE, copy, python, shlex.join(arguments)]
    return subprocess.run(inside, env=variables, check=False).returncode


def _newest_in(root: Path) -> str:
    return max((root / "usr/bin").glob("python3.[0-9][0-9]")).name


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--whole"]:
        return whole(arguments[1:])
    versions = sorted(RELEASES, reverse=True)
    if arguments[:1] == ["--newest"]:
        versions, arguments = versions[:1], arguments[1:]
    for version in versions:
        try:
            root = root_of(version)
        except NoTwinError as error:
            print(f"no newer Python: {error}")
            return 2
        python = _newest_in(root)
        number = python.removeprefix("python")
        site = PACKAGES / number
        install = ["uv", "pip", "install", "--quiet", "--python-version", number, "--target", site]
        install += ["--only-binary", ":all:", "--require-hashes", "-r", LOCK]
        subprocess.run(install, cwd=ROOT, check=True)
        paths = [Path("/mnt") / path for path in ("constructs", site.relative_to(ROOT))]
        variables = [f"PYTHONPATH={':'.join(map(str, paths))}", "PATH=/usr/bin:/bin", "HOME=/tmp"]
        pytest = [python, "-m", "pytest", "--quick", "-q", "-n", "2", "-p", "no:cacheprovider", *arguments]
        print(f"Python {number}", flush=True)
        inside = ["unshare", "--mount", "sh", "-c", INSIDE, root, ROOT, "env", *variables, *pytest]
        if code := subprocess.run(inside, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

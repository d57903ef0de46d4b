"""`make quick-pythons`: the quick tests under the Pythons of newer Debians, in the roots of the Slurm twin.

Nothing is written to the root: the checkout and the packages lie over its `/mnt`, in mounts that end with it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from project import ROOT
from slurm_twin.root import RELEASES, NoTwinError, root_of

PACKAGES = ROOT / "build" / "pythons"
LOCK = ROOT / "requirements-quick.lock"
INSIDE = """
mount --bind "$1" "$0/mnt" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && shift &&
exec chroot "$0" sh -c 'cd /mnt && exec "$@"' sh "$@"
"""


def main(arguments: list[str]) -> int:
    versions = sorted(RELEASES, reverse=True)
    if arguments[:1] == ["--newest"]:
        versions, arguments = versions[:1], arguments[1:]
    for version in versions:
        try:
            root = root_of(version)
        except NoTwinError as error:
            print(f"no newer Python: {error}")
            return 2
        python = max((root / "usr/bin").glob("python3.[0-9][0-9]")).name
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

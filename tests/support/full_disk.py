"""Run commands that write on a small file system: `unshare --mount full_disk.py FOLDER COMMANDS`.

COMMANDS is a JSON list of command lines; FOLDER is empty, and stands as `@` in them. For each, it prints one
JSON line: exit code, output, and the files that the command left.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

from typer.testing import CliRunner

from ultracluster.cli.main import app

PAGES = 4096
FREE = (0, 1)
"""Pages that a command may write before the disk is full."""


def main() -> None:
    folder, commands = Path(sys.argv[1]), json.loads(sys.argv[2])
    for words, free in product(commands, FREE):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
        _fill(folder, free)
        before = set(folder.rglob("*"))
        ended = CliRunner().invoke(app, [word.replace("@", str(folder)) for word in words])
        left = sorted(str(path.relative_to(folder)) for path in set(folder.rglob("*")) - before)
        found = {
            "words": words,
            "free": free,
            "code": ended.exit_code,
            "output": ended.output[-600:],
            "left": left,
        }
        sys.stdout.write(f"{json.dumps(found)}\n")
        subprocess.run(["umount", folder], check=True)


def _fill(folder: Path, free: int) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(b"x" * PAGES):
                pass
        file.truncate(file.tell() // PAGES * PAGES - free * PAGES)


if __name__ == "__main__":
    main()

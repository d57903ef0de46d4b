"""What collectors read of their node: files below a root that can be another, commands with a limit, facts,
and what they keep between two rounds. Python 3.9 and newer, and nothing but its standard library.
"""

import itertools
import json
import os
import subprocess
import time
from pathlib import Path

_FILE_BYTES = 1 << 20


class CannotTellError(Exception):
    """Something has not answered, or not well."""


class Host:
    """A node as one round sees it.

    Args:
        root: folder below which the node's files lie; `/` but for tests and containers.
        state: folder for what is kept until the next boot.
        settings: facts as the step wrote them (`settings.json`); a key that is absent is unknown.
        now: seconds since 1970.
    """

    is_mount = staticmethod(os.path.ismount)

    def __init__(self, root="/", state="/run/ultracluster/metrics", settings=None, now=None):
        self.root, self.state = Path(root), Path(state)
        self.settings = settings if isinstance(settings, dict) else {}
        self.now = time.time() if now is None else now

    def path(self, text):
        return self.root / str(text).lstrip("/")

    def text(self, path, most=_FILE_BYTES):
        """A file's text, at most so many bytes; None where it cannot be read."""
        try:
            with self._at(path).open("rb") as file:
                return file.read(most).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def tail(self, path, most=65536):
        """The last bytes of a file; empty where it cannot be read."""
        try:
            with self._at(path).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - most))
                return file.read(most).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def number(self, path):
        """Of a file of the kernel that holds one; None where it holds something else."""
        text = (self.text(path, 64) or "").strip()
        return int(text) if text.isdigit() and len(text) < 21 else None

    def names(self, folder, most=4096):
        """What lies in a folder, sorted; nothing where there is none."""
        try:
            with os.scandir(self._at(folder)) as entries:
                return sorted(entry.name for entry in itertools.islice(entries, most))
        except OSError:
            return []

    def document(self, path):
        """A JSON object; empty where it is missing, damaged or something else."""
        try:
            found = json.loads(self.text(path) or "")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def run(self, *words, seconds, environment=None, most=32 << 20):
        """What a command prints.

        Raises:
            CannotTellError: it is missing, failed, or was late.
        """
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(0.1, seconds),
                check=False,
                env={**os.environ, **(environment or {})},
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise CannotTellError(f"{words[0]}: {error}") from None
        if done.returncode != 0 or len(done.stdout) > most:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
            raise CannotTellError(f"{' '.join(words[:2])}: {said or done.returncode}")
        return done.stdout.decode("utf-8", "replace")

    # ---- between two rounds

    def kept(self, name):
        """What `keep` has written under this name since the boot; empty before that."""
        return self.document(self.state / f"{name}.json")

    def keep(self, name, document):
        """At once, or not at all; what cannot be written is not remembered, and costs nothing else."""
        new = self.state / f".{name}.{os.getpid()}"
        try:
            self.state.mkdir(parents=True, exist_ok=True, mode=0o755)
            new.write_text(json.dumps(document), encoding="utf-8")
            new.replace(self.state / f"{name}.json")
        except OSError:
            return False
        return True

    def count(self, key):
        """A fact that is a number from 0 on; None where it is unknown."""
        value = self.settings.get(key)
        return value if type(value) is int and value >= 0 else None

    def _at(self, path):
        return path if isinstance(path, Path) else self.path(path)


def started(pid):
    """When a process of this machine has started, in ticks since boot; None where none runs so."""
    try:
        fields = Path(f"/proc/{int(pid)}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError, TypeError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])

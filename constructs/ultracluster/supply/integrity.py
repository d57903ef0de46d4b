"""Whether a file is the right one: digests, and GPG signatures by a pinned key."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


class IntegrityError(Exception):
    """A file that is not what the release says; the message names both."""


class NoGpgError(Exception):
    """A signature cannot be checked: there is no `gpg` on this machine."""


@dataclass(frozen=True, slots=True)
class Digests:
    """What a file was measured to be."""

    size: int
    sha256: str
    sha512: str


def measure(file: Path) -> Digests:
    """Size and digests of a file, in one pass."""
    size, sha256, sha512 = 0, hashlib.sha256(), hashlib.sha512()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            size += len(block)
            sha256.update(block)
            sha512.update(block)
    return Digests(size, sha256.hexdigest(), sha512.hexdigest())


def check_digests(name: str, digests: Digests, *, sha256: str | None, sha512: str | None) -> None:
    """Compare with what is recorded; None is not compared.

    Raises:
        IntegrityError: a digest differs.
    """
    for algorithm, expected in (("sha256", sha256), ("sha512", sha512)):
        measured: str = getattr(digests, algorithm)
        if expected and measured != expected:
            raise IntegrityError(
                f"refused {name}: its {algorithm} is {measured[:16]}..., the release "
                f"records {expected[:16]}..."
            )


def check_signature(file: Path, signature: Path, key: Path, fingerprint: str) -> None:
    """Check a detached GPG signature, made by the key of this fingerprint or one of its subkeys.

    Works in a key ring of its own: neither your keys nor your trust settings matter.

    Args:
        fingerprint: 40 hex digits of the primary key.

    Raises:
        IntegrityError: the signature is bad, of another key, or of an expired or revoked one.
        NoGpgError: there is no `gpg`.
    """
    with tempfile.TemporaryDirectory(prefix="ultracluster-gpg-") as home:
        _gpg(home, "--import", str(key))
        answer = _gpg(home, "--status-fd", "1", "--verify", str(signature), str(file))
    lines = [line.split()[1:] for line in answer.splitlines() if line.startswith("[GNUPG:] ")]
    valid = next((line for line in lines if line[:1] == ["VALIDSIG"]), None)
    good = any(line[:1] == ["GOODSIG"] for line in lines)
    if valid is None or not good:
        states = [line[0] for line in lines if line[0] in _BAD]
        why = _BAD[states[0]] if states else "no valid signature"
        raise IntegrityError(f"refused {file.name}: {why} (key {fingerprint})")
    if fingerprint not in (valid[1], valid[-1]):
        raise IntegrityError(
            f"refused {file.name}: signed by key {valid[-1]}, the release pins {fingerprint}"
        )


def key_fingerprints(key: Path) -> list[str]:
    """Fingerprints of the primary keys in a key file.

    Raises:
        IntegrityError: it holds no key.
        NoGpgError: there is no `gpg`.
    """
    with tempfile.TemporaryDirectory(prefix="ultracluster-gpg-") as home:
        rows = [line.split(":") for line in _gpg(home, "--with-colons", "--show-keys", str(key)).splitlines()]
    fingerprints: list[str] = []
    primary = False
    for row in rows:
        if row[0] in ("pub", "sub"):
            primary = row[0] == "pub"
        elif row[0] == "fpr" and primary:
            fingerprints.append(row[9])
            primary = False
    if not fingerprints:
        raise IntegrityError(f"{key.name} holds no public key")
    return fingerprints


def _gpg(home: str, *arguments: str) -> str:
    program = shutil.which("gpg")
    if program is None:
        raise NoGpgError("there is no `gpg` on this machine to check signatures with: install GnuPG")
    command = [program, "--homedir", home, "--batch", "--no-tty", "--no-auto-check-trustdb", *arguments]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed arguments
    return done.stdout.decode(errors="replace")


_BAD = {
    "BADSIG": "its signature does not match the file",
    "EXPKEYSIG": "the key of its signature has expired",
    "REVKEYSIG": "the key of its signature was revoked",
    "EXPSIG": "its signature has expired",
    "ERRSIG": "its signature is of a key that is not the pinned one",
    "NODATA": "its signature file holds no signature",
}

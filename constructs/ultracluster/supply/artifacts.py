"""Fetching one artifact of a release into a cache, verified."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ultracluster.software import Artifact
from ultracluster.supply.downloads import SMALL, Advance, DownloadError, download
from ultracluster.supply.integrity import (
    Digests,
    IntegrityError,
    check_digests,
    check_signature,
    measure,
)

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-(?P<python>[a-z]+\d+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
_TIMEOUT = 1800  # seconds for one wheel


def default_cache() -> Path:
    """Where downloads are kept between runs: `$XDG_CACHE_HOME/ultracluster` or `~/.cache/ultracluster`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ultracluster"


def has_source(artifact: Artifact) -> bool:
    """Whether it can be fetched: from its address, or with pip if it is a wheel."""
    return artifact.url is not None or _is_wheel(artifact.name)


def fetch(
    artifact: Artifact, cache: Path, *, signature: bool = True, advance: Advance | None = None
) -> tuple[Path, Digests]:
    """The artifact as a verified file, which is kept below its digest.

    A file that fails its check is removed, so that it is never found; a cached one is fetched once more.
    What has no digest yet is never taken from the cache: its maker may serve another file by now.

    Args:
        signature: check the signature where the artifact names one.

    Raises:
        DownloadError: it cannot be fetched.
        IntegrityError: it is not what the release says.
        NoGpgError: its signature has to be checked and there is no `gpg`.
        ValueError: it has no address.
    """
    if artifact.digest is None:
        return served(artifact, cache, advance=advance)
    file = _place(cache, artifact.digest[1], artifact.name)
    cached = file.exists()
    for last in (not cached, True):
        if not file.exists():
            _download(artifact, file, artifact.size, advance)
        try:
            return file, _verified(artifact, file, signature)
        except IntegrityError:
            file.unlink(missing_ok=True)
            if last:
                raise
    raise AssertionError("unreachable")


def served(artifact: Artifact, cache: Path, *, advance: Advance | None = None) -> tuple[Path, Digests]:
    """What its source has at this moment, whatever the release records; a pinned signature decides, too.

    Raises:
        DownloadError, IntegrityError, NoGpgError, ValueError: as `fetch`.
    """
    file = _place(cache, "served", artifact.name)
    file.unlink(missing_ok=True)
    part, tag = (file.with_name(file.name + suffix) for suffix in (".part", ".etag"))
    if not tag.exists():  # without it, it is not known whether the beginning is of the same file
        part.unlink(missing_ok=True)
    _download(artifact, file, None, advance)
    try:
        free = artifact.model_copy(update={"size": None, "sha256": None, "sha512": None})
        digests = _verified(free, file, signature=True)
    except IntegrityError:
        file.unlink(missing_ok=True)
        raise
    kept = _place(cache, digests.sha256, artifact.name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    return file.replace(kept), digests


def _place(cache: Path, digest: str, name: str) -> Path:
    return cache / digest[:16] / name


def _download(artifact: Artifact, file: Path, size: int | None, advance: Advance | None) -> None:
    if artifact.url is not None:
        download(artifact.url, file, size=size, advance=advance)
    elif _is_wheel(artifact.name):
        _fetch_wheel(artifact.name, file)
    else:
        raise ValueError(f"{artifact.name} has no address")


def _verified(artifact: Artifact, file: Path, signature: bool) -> Digests:
    digests = measure(file)
    if artifact.size is not None and digests.size != artifact.size:
        raise IntegrityError(
            f"refused {artifact.name}: it has {digests.size:,} bytes, the release records {artifact.size:,}"
        )
    check_digests(artifact.name, digests, sha256=artifact.sha256, sha512=artifact.sha512)
    if signature and artifact.signature_url and artifact.key_url and artifact.key_fingerprint:
        detached, key = file.with_name(f"{file.name}.sig"), file.with_name(f"{file.name}.key")
        for url, target in ((artifact.signature_url, detached), (artifact.key_url, key)):
            target.unlink(missing_ok=True)
            download(url, target, most=SMALL)
        check_signature(file, detached, key, artifact.key_fingerprint)
    return digests


def _is_wheel(name: str) -> bool:
    """Whether a file name says all that pip has to know."""
    return _WHEEL.fullmatch(name) is not None


def _fetch_wheel(name: str, target: Path) -> None:
    """Fetch the wheel called `name` into `target`, which appears when it is complete.

    Raises:
        DownloadError: pip is missing, or its index does not have exactly this file.
        OSError: the disk is full or not writable.
    """
    match = _WHEEL.fullmatch(name)
    if match is None:
        raise DownloadError(f"{name} is no name of a wheel")
    tags: list[str] = []
    if match["platform"] != "any":  # else it is for every machine, and pip's own Python will do
        tags = ["--abi", match["abi"], "--python-version", re.sub(r"\D", "", match["python"])]
        tags += ["--implementation", re.sub(r"\d", "", match["python"])]
        for platform in match["platform"].split("."):
            tags += ["--platform", platform]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [
            *(
                sys.executable,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--no-input",
                "download",
                "--quiet",
            ),
            *("--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest", folder, *tags),
            f"{match['name']}=={match['version']}",
        ]
        try:
            done = subprocess.run(  # noqa: S603 - every argument is a part of a checked name
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise DownloadError(f"{name}: pip took longer than {_TIMEOUT} s") from None
        file = Path(folder) / name
        if done.returncode or not file.is_file():
            errors = [line for line in done.stderr.splitlines() if line.strip()]
            raise DownloadError(
                f"{name}: pip does not find it ({errors[-1] if errors else 'it said nothing'})"
            )
        file.replace(target)

"""What a component is installed from: files with digests, packages of repositories with keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from ultracluster.config.base import Line, Many, Model, Prose
from ultracluster.software.address import PATTERN, refused

Integrity = Literal["checksum", "signature", "to-be-locked"]
Architecture = Literal["x86_64", "aarch64"]
OperatingSystem = Annotated[str, Field(pattern=r"^[a-z]+[0-9][0-9.]*$", examples=["ubuntu22.04", "al2023"])]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _address(url: str) -> str:
    if why := refused(url):
        raise ValueError(f"{url} {why}")
    return url


Url = Annotated[str, Field(pattern=PATTERN, max_length=2048), AfterValidator(_address)]

_STRING = {"type": "string"}
_DIGEST: dict[str, Any] = {
    "anyOf": [{"required": [name], "properties": {name: _STRING}} for name in ("sha256", "sha512")],
}
_SIGNATURE_FIELDS = ("signature_url", "key_url", "key_fingerprint")
_BY_INTEGRITY: list[Any] = [
    {"if": {"properties": {"integrity": {"const": "checksum"}}}, "then": _DIGEST},
    {
        "if": {"properties": {"integrity": {"const": "signature"}}},
        "then": {
            "required": list(_SIGNATURE_FIELDS),
            "properties": dict.fromkeys(_SIGNATURE_FIELDS, _STRING),
        },
    },
    {"if": {"properties": {"integrity": {"const": "to-be-locked"}}}, "then": {"not": _DIGEST}},
]


class Artifact(Model):
    """One file that is downloaded, and how it is known to be the right one."""

    model_config = ConfigDict(json_schema_extra={"allOf": _BY_INTEGRITY})

    os: Many[OperatingSystem] = ()
    """Operating systems it is for; none named is any: what is compiled or unpacked suits each."""
    arch: Annotated[Many[Architecture], Field(min_length=1)]
    """CPU architectures it is for, as `uname -m` names them."""
    url: Url | None = None
    """Where upstream publishes it; without one it has to be put into the mirror by hand."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    """File name in the mirror."""
    size: Annotated[int, Field(gt=0)] | None = None
    """Bytes; null if not known."""
    sha256: Sha256 | None = None
    sha512: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] | None = None
    integrity: Integrity
    """`checksum`: a digest is recorded here. `signature`: GPG decides, a digest next to it must agree.
    `to-be-locked`: nothing is known yet, `ultracluster software lock` fills it."""
    signature_url: Url | None = None
    """Detached GPG signature."""
    key_url: Url | None = None
    """Public key of the signer."""
    key_fingerprint: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")] | None = None
    """Fingerprint of that key, without spaces."""
    note: Prose = ""

    @model_validator(mode="after")
    def _integrity_is_backed(self) -> Artifact:
        if self.integrity == "checksum" and not self.locked:
            raise ValueError(f"{self.name}: integrity `checksum` without sha256 or sha512")
        if self.integrity == "signature" and not all(getattr(self, name) for name in _SIGNATURE_FIELDS):
            raise ValueError(f"{self.name}: integrity `signature` without {', '.join(_SIGNATURE_FIELDS)}")
        if self.integrity == "to-be-locked" and self.locked:
            raise ValueError(f"{self.name}: integrity `to-be-locked` next to a digest")
        return self

    def suits(self, system: str | None, machine: str) -> bool:
        """Return whether it is for an operating system and processor; None is any system."""
        return machine in self.arch and (system is None or not self.os or system in self.os)

    @property
    def locked(self) -> bool:
        """Whether a digest is recorded."""
        return bool(self.sha256 or self.sha512)

    @property
    def digest(self) -> tuple[str, str] | None:
        """Algorithm and digest, SHA-256 first; None if there is none."""
        if self.sha256:
            return "sha256", self.sha256
        return ("sha512", self.sha512) if self.sha512 else None

    def mirror_key(self, release: str) -> str:
        """Object key below the mirror: `<release>/<first 16 digits>/<name>`.

        Raises:
            ValueError: no digest is recorded.
        """
        if not self.digest:
            raise ValueError(f"{self.name} has no digest yet: run `ultracluster software lock`")
        return f"{release}/{self.digest[1][:16]}/{self.name}"


class Repository(Model):
    """A package repository with its signing key."""

    url: Url
    suite: Line | None = None
    """apt: suite and component (`jammy main`); dnf: module stream; none for a flat repository."""
    key_url: Url | None = None
    key_fingerprint: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")] | None = None


class PackageSet(Model):
    """Packages that a package manager installs from one repository."""

    os: Annotated[Many[OperatingSystem], Field(min_length=1)]
    arch: Annotated[Many[Architecture], Field(min_length=1)]
    names: Annotated[
        Many[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+:~=*_-]*$")]], Field(min_length=1)
    ]
    """As the package manager of this system takes them: `name=version` for apt, `name-version` for dnf."""
    repository: Repository | None = None
    """Where from; None is the system's own repositories."""
    note: Prose = ""

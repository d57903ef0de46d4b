"""Which KMS key encrypts what: one for all, unless the environment file names others by purpose."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.config.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """ARNs of KMS keys, by purpose (`storage.keys` of an environment file describes them)."""

    volumes: str
    file_systems: str
    buckets: str
    logs: str
    secrets: str


def keys_of(storage: Storage, general: str) -> Keys:
    """The key of each purpose; `general` is the ARN of the one for what none is named for."""
    named = storage.keys
    return Keys(
        volumes=named.volumes.arn if named.volumes else general,
        file_systems=named.file_systems.arn if named.file_systems else general,
        buckets=named.buckets.arn if named.buckets else general,
        logs=named.logs.arn if named.logs else general,
        secrets=named.secrets.arn if named.secrets else general,
    )

"""Rules on: the bucket that takes access logs, where it exists already."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.lustre import lustre_of
from ultracluster.config.remedy import DROP, ask, drop, whole
from ultracluster.config.storage import DataRepository, Storage
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import DATA

_GUIDE = "S3 User Guide: Enabling Amazon S3 server access logging"


@DATA.warning(
    8,
    _GUIDE,
    by_hand="aws s3api get-bucket-policy --bucket <bucket>; "
    "aws s3api get-bucket-encryption --bucket <bucket>; "
    "aws s3api get-object-lock-configuration --bucket <bucket>",
)
def log_bucket_admits_s3(storage: Storage) -> Breaches:
    """S3 may write access logs to the existing log bucket."""
    bucket = storage.log_bucket
    if bucket and _makes_buckets(storage):
        yield at("log_bucket", "name").breach(
            f"{bucket.name} was made elsewhere: the guide requires a bucket of this Region and "
            "account that lets logging.s3.amazonaws.com put objects, is encrypted by S3 itself "
            "(SSE-S3) and has no Object Lock. With another, logs are missing without an error.",
            ask("action", "look with the commands of this rule, and acknowledge what you saw"),
        )


@DATA.warning(9, "this file: buckets that are made here")
def log_bucket_used(storage: Storage) -> Breaches:
    """log_bucket is given only where a bucket is made that logs to it."""
    if storage.log_bucket and not _makes_buckets(storage):
        yield at("log_bucket").breach(
            f"no bucket is made here, so nothing logs to {storage.log_bucket.name}. Logging of "
            "buckets that exist is set where they are made.",
            drop(),
        )


@DATA.warning(10, _GUIDE)
def log_bucket_separate(storage: Storage) -> Breaches:
    """The log bucket is not one of the buckets that hold data."""
    if not storage.log_bucket:
        return
    name = storage.log_bucket.name
    users = [f"`{folder}`" for folder, link in _links(storage) if link.bucket == name]
    users += ["scripts_bucket"] if storage.scripts_bucket == storage.log_bucket else []
    if users:
        yield at("log_bucket", "name").breach(
            f"{name} is the bucket of {' and '.join(users)}, too: logs would lie among the data, "
            "be imported with it, and the writing of each would be logged in turn.",
            whole(DROP).noting("one is then made; or name a bucket that holds only logs"),
        )


def _makes_buckets(storage: Storage) -> bool:
    """Whether the bucket of the scripts, or that of the data, is made here."""
    return not storage.scripts_bucket or any(link.bucket is None for _, link in _links(storage))


def _links(storage: Storage) -> Iterator[tuple[str, DataRepository]]:
    """Folders of all Lustre file systems that are tied to S3."""
    for one in (storage.lustre, *storage.further_lustre.values()):
        yield from lustre_of(one).data_repositories.items() if one else ()

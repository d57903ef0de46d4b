"""Rules on: names of buckets."""

from __future__ import annotations

import re

from ultracluster.config.base import s3_place
from ultracluster.config.environment import Software
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import ask
from ultracluster.config.storage import DataRepository, ExistingBucket, JobBucket
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV

_RESERVED_BEGINNINGS = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_ENDINGS = {
    "-s3alias": "it is the alias of an access point",
    "--ol-s3": "it is the alias of an Object Lambda access point",
    ".mrap": "it is the alias of a Multi-Region access point",
    "--x-s3": "it is a directory bucket, which FSx does not link",
    "--table-s3": "it is a table bucket",
}


@ENV.error(17, "Amazon S3 User Guide, General purpose bucket naming rules", "2026-11-22")
def bucket_names(owner: DataRepository | ExistingBucket | JobBucket | Software) -> Breaches:
    """The name of a bucket follows the naming rules of S3."""
    path: YamlPath
    match owner:
        case DataRepository(bucket=name) | JobBucket(bucket=name):
            path = ("bucket",)
        case ExistingBucket(name=name):
            path = ("name",)
        case Software(mirror=mirror):
            path, name = ("mirror",), s3_place(mirror)[0] if mirror else ""
    if why := _why_not(name or ""):
        yield at(*path).breach(
            f"`{name}` cannot be the name of a bucket: {why}.",
            ask("fact", "the name of the bucket, as `aws s3 ls` prints it"),
        )


def _why_not(name: str) -> str:
    """Why S3 gives no bucket this name; empty if it may."""
    if ".." in name:
        return "two dots stand together"
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", name):
        return "it is an IP address"
    if begin := next((begin for begin in _RESERVED_BEGINNINGS if name.startswith(begin)), ""):
        return f"S3 keeps names that begin with `{begin}` for itself"
    if end := next((end for end in _RESERVED_ENDINGS if name.endswith(end)), ""):
        return f"names that end in `{end}` are not of general purpose buckets: {_RESERVED_ENDINGS[end]}"
    return ""

"""Rules on: tags."""

from __future__ import annotations

import unicodedata

from ultracluster.config import Environment
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV
from ultracluster.rules.sources import BOTOCORE

TAGS_OF_OURS = (ENVIRONMENT_TAG, "Name")
"""Tags that the constructs put on resources in addition to the environment's."""
_MAX_TAGS = 50  # FSx, EC2, S3, IAM and HyperPod alike
_IN_TAGS = "_.:/=+-@"


@ENV.error(9, f"{BOTOCORE} fsx: Tags; EC2 User Guide: tag restrictions")
def tag_count(environment: Environment) -> Breaches:
    """There are at most 48 tags: AWS takes 50 on a resource, and two are added."""
    most = _MAX_TAGS - len(TAGS_OF_OURS)
    if len(environment.tags) > most:
        yield at("tags").breach(
            f"{len(environment.tags)} tags. AWS takes {_MAX_TAGS} on a resource, and "
            f"{' and '.join(f'`{tag}`' for tag in TAGS_OF_OURS)} are added to these.",
            ask("decision", f"at most {most} tags"),
        )


@ENV.error(10, "IAM User Guide: Tags for IAM resources")
def tag_case(environment: Environment) -> Breaches:
    """Tag keys differ in more than case."""
    seen = {TAGS_OF_OURS[0].lower(): TAGS_OF_OURS[0]}
    for key in environment.tags:
        first = seen.setdefault(key.lower(), key)
        if first == key and key != TAGS_OF_OURS[0]:
            continue
        whose = "which is set on every resource" if first == TAGS_OF_OURS[0] else "which stands above"
        yield at("tags", key).breach(
            f"`{key}` is the same key as `{first}`, {whose}. IAM does not tell tag keys apart by "
            "case and refuses the role that carries both.",
            drop().noting("or rename it"),
        )


@ENV.error(11, f"{BOTOCORE} fsx: TagKey, TagValue")
def tag_characters(environment: Environment) -> Breaches:
    """Tags hold only characters that AWS takes."""
    for key, value in environment.tags.items():
        for what, text in (("key", key), ("value", value)):
            wrong = {sign for sign in text if not _in_tags(sign)}
            if wrong:
                fixed = "".join("-" if sign in wrong else sign for sign in text)
                yield at("tags", key).breach(
                    f"the {what} `{text}` has {' '.join(sorted(wrong))}; FSx and others refuse the "
                    f"resource. Letters, digits, spaces and {' '.join(_IN_TAGS)} are taken.",
                    rename(fixed) if what == "key" else write(fixed),
                )


@ENV.error(
    16,
    "EC2 User Guide, Tag your Amazon EC2 resources (tag restrictions); S3, FSx and IAM have the same",
    "2026-11-22",
)
def reserved_tags(environment: Environment) -> Breaches:
    """No tag's key begins with `aws:`."""
    for key in environment.tags:
        if key.lower().startswith("aws:"):
            own = key[4:].lstrip(": ")
            yield at("tags", key).breach(
                f"`{key}` begins with `aws:`, in whatever case, which AWS keeps for tags of its own.",
                rename(own) if own and own not in environment.tags else drop(),
            )


def _in_tags(sign: str) -> bool:
    return sign in _IN_TAGS or unicodedata.category(sign)[0] in "LNZ"

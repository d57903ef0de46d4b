"""Rules on: data repository associations: folders of a Lustre file system that are linked to S3."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ultracluster.catalog.fsx import limits, lustre
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.remedy import DROP, Remedy, ask, beside, inside, relative, rename, write
from ultracluster.config.storage import DataRepository
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.lustre_changes import other_deployment
from ultracluster.rules.sets import FSX
from ultracluster.rules.sources import BOTOCORE, CFN_LINT

_FOLDERS = "data_repositories"
_CREATE = f"{BOTOCORE} fsx: CreateDataRepositoryAssociation"
_NO_LINE_BREAKS = re.compile(r"[\x00\x85\u2028\u2029\r\n]")


@FSX.error(50, _CREATE)
def link_count(facts: LustreFacts) -> Breaches:
    """A file system has at most eight data repository associations."""
    most, links = limits().data_repositories, facts.data_repositories
    if len(links) > most:
        yield at(_FOLDERS).breach(
            f"{len(links)} data repository associations: FSx takes {most} per file system.",
            ask("decision", f"at most {most}: link a folder further up, with a shorter prefix"),
        )


@FSX.error(51, f"{_CREATE}, FileSystemPath")
def link_folder(facts: LustreFacts) -> Breaches:
    """The folder of a data repository association is an absolute path."""
    for folder in facts.data_repositories:
        if not _is_folder(folder):
            yield at(_FOLDERS, folder).breach(
                f"`{folder}` is not a folder of the file system: FSx requires a path from its root, at "
                "most 4096 characters. The root is /, whatever the nodes mount it as.",
                rename("/" + _NO_LINE_BREAKS.sub("", folder).strip("/ ")),
            )


@FSX.error(52, f"{_CREATE}, FileSystemPath")
def link_folder_overlap(facts: LustreFacts) -> Breaches:
    """Folders of data repository associations do not overlap."""
    folders = [folder for folder in facts.data_repositories if _is_folder(folder)]
    for outer, inner in _overlaps({folder: _with_slash(folder) for folder in folders}):
        whole = outer == "/"
        root = " `/` is the whole file system: no other folder can be linked with it." if whole else ""
        yield at(_FOLDERS, inner).breach(
            f"`{inner}` lies in `{outer}`, which is linked too: FSx ties each file to one place "
            f"in S3 and refuses the second.{root}",
            ask("decision", f"{'' if whole else f'a folder outside `{outer}`, or '}remove one of the two"),
        )


@FSX.error(53, _CREATE)
def link_prefix_overlap(facts: LustreFacts) -> Breaches:
    """Prefixes of data repository associations with one bucket do not overlap."""
    links = facts.data_repositories
    for bucket in {link.bucket for link in links.values()}:
        own = {name: _key_prefix(link) for name, link in links.items() if link.bucket == bucket}
        for outer, inner in _overlaps(own):
            where = f"s3://{bucket}/" if bucket else "the environment's data bucket: "
            path: YamlPath = (_FOLDERS, inner, *(("prefix",) if links[inner].prefix else ()))
            yield at(*path).breach(
                f"`{inner}` and `{outer}` are linked to {where}{own[inner]} and "
                f"{where}{own[outer]}, of which one holds the other: each object belongs to one "
                "folder.",
                _prefixes(bucket, inner, outer, up=len(path) - 1),
            )


@FSX.error(54, _CREATE)
def link_version(facts: LustreFacts) -> Breaches:
    """The Lustre version can be linked to S3."""
    settings, versions = facts.new, limits().data_repository_versions
    if not settings or not facts.data_repositories or settings.version in versions:
        return
    if lustre(settings.deployment).data_repositories:
        yield at("version").breach(
            f"Lustre {settings.version} with data_repositories: FSx links {' and '.join(versions)} to S3.",
            write(versions[-1]),
        )


@FSX.error(55, _CREATE)
def link_deployment(facts: LustreFacts) -> Breaches:
    """The Lustre deployment can be linked to S3."""
    settings = facts.new
    if settings and facts.data_repositories and not lustre(settings.deployment).data_repositories:
        yield at("deployment").breach(
            f"{settings.deployment} with data_repositories: FSx makes no data repository association "
            f"on {lustre(settings.deployment).api_type}.",
            other_deployment(
                settings, "scratch-2" if settings.deployment == "scratch-1" else "persistent-2-ssd"
            ),
        )


@FSX.error(56, f"{_CREATE}, DataRepositoryPath")
def link_prefix(link: DataRepository) -> Breaches:
    """The prefix of a data repository is a plain key prefix, without s3:// and empty parts."""
    prefix = link.prefix or ""
    url = re.fullmatch(r"s3://([^/]+)/*(.*)", prefix)
    if url:
        key = re.sub("/+", "/", _NO_LINE_BREAKS.sub("", url[2])).lstrip("/")
        if link.bucket in (None, url[1]):
            remedy = beside(bucket=url[1], prefix=key or DROP)
        else:
            remedy = ask("decision", f"bucket: {link.bucket} or {url[1]}, and prefix: {key}")
    elif "//" in prefix or _NO_LINE_BREAKS.search(prefix):
        remedy = write(re.sub("/+", "/", _NO_LINE_BREAKS.sub("", prefix)))
    else:
        return
    yield at("prefix").breach(
        f"`{prefix}` is not the beginning of object keys: FSx gets s3://<bucket>/<prefix>/, "
        "and an empty part or a second scheme in it matches nothing.",
        remedy,
    )


@FSX.error(57, f"AWS::FSx::DataRepositoryAssociation ({CFN_LINT}): Events has unique items")
def link_events(link: DataRepository) -> Breaches:
    """No import or export event is given twice."""
    for key, events in (("import_events", link.import_events), ("export_events", link.export_events)):
        twice = [event for event, times in Counter(events).items() if times > 1]
        if twice:
            yield at(key).breach(
                f"{', '.join(twice)} is given more than once; CloudFormation takes each event once.",
                write(list(dict.fromkeys(events))),
            )


@FSX.warning(58, f"{_CREATE}, S3 and BatchImportMetaDataOnCreate")
def link_idle(link: DataRepository) -> Breaches:
    """A data repository association imports or exports something."""
    if not (link.import_events or link.export_events or link.import_existing):
        yield at().breach(
            "this folder neither lists what is in S3, nor imports, nor exports: nothing moves "
            "until someone runs a data repository task by hand.",
            inside(import_existing=True) | inside(import_events=["new", "changed", "deleted"]),
        )


@FSX.warning(59, "FSx for Lustre User Guide: Linking your file system to an S3 bucket")
def link_export_blind(link: DataRepository) -> Breaches:
    """A folder that exports to an existing bucket also lists what is in it."""
    if link.bucket and link.export_events and not (link.import_existing or link.import_events):
        yield at("import_existing").breach(
            f"this folder exports to {link.bucket} and lists nothing from it: a new file of "
            "the same name replaces an object that is not visible on the cluster.",
            write(True).noting("or a prefix that nothing else writes to"),
        )


@FSX.warning(
    81,
    f"{_CREATE}, FileSystemPath: begins at the root of the file system",
    "2026-11-28",
    by_hand="lfs df -h; ls <mount path>  (on a node)",
)
def link_below_mount(facts: LustreFacts) -> Breaches:
    """Folders of data repository associations are paths in the file system, without its mount path."""
    mount = facts.mount_path.rstrip("/")
    for folder in facts.data_repositories:
        if not mount or not _is_folder(folder) or not _with_slash(folder).startswith(f"{mount}/"):
            continue
        meant = folder[len(mount) :].rstrip("/")
        free = meant and not any(
            _with_slash(other).startswith(f"{meant}/") for other in facts.data_repositories if other != folder
        )
        yield at(_FOLDERS, folder).breach(
            f"`{folder}` begins with the mount path: nodes would see this folder as {mount}{folder}, because "
            "FSx counts from the root of the file system.",
            rename(meant) if free else ask("decision", "a path from the root of the file system"),
        )


def _is_folder(folder: str) -> bool:
    return folder.startswith("/") and len(folder) <= 4096 and not _NO_LINE_BREAKS.search(folder)


def _with_slash(path: str) -> str:
    """With exactly one slash at the end, so that /a does not begin /ab."""
    return path.rstrip("/") + "/"


def _key_prefix(link: DataRepository) -> str:
    """Empty for the whole bucket."""
    return _with_slash(link.prefix) if link.prefix else ""


def _overlaps(paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Names of paths of which one begins the other, as (outer, inner); of equal ones the later."""
    names = list(paths)
    for index, later in enumerate(names):
        for earlier in names[:index]:
            if paths[later].startswith(paths[earlier]):
                yield earlier, later
            elif paths[earlier].startswith(paths[later]):
                yield later, earlier


def _prefixes(bucket: str | None, inner: str, outer: str, *, up: int) -> Remedy:
    """Prefixes after the folders in our own bucket; of another bucket only its user knows."""
    names = (inner.strip("/") or "data", outer.strip("/") or "all")
    if bucket:
        return ask("decision", f"prefix: {names[0]}/ in one and {names[1]}/ in the other")
    return relative(
        {(key, "prefix"): f"{name}/" for key, name in zip((inner, outer), names, strict=True)}, up=up
    )

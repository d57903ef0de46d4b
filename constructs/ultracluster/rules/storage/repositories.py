"""Rules on: data repository associations: folders of a Lustre file system tied to S3."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ultracluster.catalog.fsx import limits, lustre
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, inside, rename, write
from ultracluster.config.storage import DataRepository, ScratchLustre
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import FSX
from ultracluster.rules.storage.lustre import LUSTRE, new_lustre, other_deployment

_FOLDERS: Path = (*LUSTRE, "data_repositories")
_CREATE = "botocore 1.44.5 fsx: CreateDataRepositoryAssociation"
_NO_LINE_BREAKS = re.compile(r"[\x00\x85\u2028\u2029\r\n]")


@FSX.rule(50, "error", "A file system has few enough links to S3", source=_CREATE)
def link_count(environment: Environment) -> Iterator[Breach]:
    most, links = limits().data_repositories, environment.data_repositories
    if len(links) > most:
        yield Breach(
            _FOLDERS,
            f"{len(links)} data repository associations: FSx takes {most} per file system.",
            ask("decision", f"at most {most}: link a folder further up, with a shorter prefix"),
        )


@FSX.rule(51, "error", "A linked folder is an absolute path", source=f"{_CREATE}, FileSystemPath")
def link_folder(environment: Environment) -> Iterator[Breach]:
    for folder in environment.data_repositories:
        if _is_folder(folder):
            continue
        yield Breach(
            (*_FOLDERS, folder),
            f"`{folder}` is not a folder of the file system: FSx wants a path from its root, at "
            "most 4096 characters. The root is /, whatever the nodes mount it as.",
            rename("/" + _NO_LINE_BREAKS.sub("", folder).strip("/ ")),
        )


@FSX.rule(52, "error", "Linked folders do not overlap", source=f"{_CREATE}, FileSystemPath")
def link_folder_overlap(environment: Environment) -> Iterator[Breach]:
    links = {folder: None for folder in environment.data_repositories if _is_folder(folder)}
    for outer, inner in _overlaps({folder: _with_slash(folder) for folder in links}):
        root = " `/` is the whole file system: it can only be linked alone." if outer == "/" else ""
        yield Breach(
            (*_FOLDERS, inner),
            f"`{inner}` lies in `{outer}`, which is linked too: FSx ties each file to one place "
            f"in S3 and refuses the second.{root}",
            ask("decision", f"a folder beside `{outer}`, or remove one of the two"),
        )


@FSX.rule(53, "error", "Linked prefixes of one bucket do not overlap", source=_CREATE)
def link_prefix_overlap(environment: Environment) -> Iterator[Breach]:
    links = environment.data_repositories
    for bucket in {link.bucket for link in links.values()}:
        own = {name: _key_prefix(link) for name, link in links.items() if link.bucket == bucket}
        for outer, inner in _overlaps(own):
            where = f"s3://{bucket}/" if bucket else "the environment's data bucket: "
            yield Breach(
                (*_FOLDERS, inner, *(("prefix",) if links[inner].prefix else ())),
                f"`{inner}` and `{outer}` are linked to {where}{own[inner]} and "
                f"{where}{own[outer]}, of which one holds the other: each object belongs to one "
                "folder.",
                _prefixes(bucket, inner, outer),
            )


@FSX.rule(54, "error", "The Lustre version can be linked to S3", source=_CREATE)
def link_version(environment: Environment) -> Iterator[Breach]:
    made, versions = new_lustre(environment), limits().data_repository_versions
    if not made or not environment.data_repositories:
        return
    deployment = lustre(made.deployment)
    if deployment.data_repositories and made.version not in versions:
        yield Breach(
            (*LUSTRE, "version"),
            f"Lustre {made.version} with data_repositories: FSx links {' and '.join(versions)} to S3.",
            write(versions[-1]),
        )


@FSX.rule(55, "error", "The deployment can be linked to S3", source=_CREATE)
def link_deployment(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if made and environment.data_repositories and not lustre(made.deployment).data_repositories:
        yield Breach(
            (*LUSTRE, "deployment"),
            f"{made.deployment} with data_repositories: FSx makes no data repository association "
            f"on {lustre(made.deployment).api_type}.",
            other_deployment(made, "scratch-2" if made.deployment == "scratch-1" else "persistent-2-ssd"),
        )


@FSX.rule(56, "error", "A prefix is a key prefix", source=f"{_CREATE}, DataRepositoryPath")
def link_prefix(environment: Environment) -> Iterator[Breach]:
    for folder, link in environment.data_repositories.items():
        prefix = link.prefix or ""
        url = re.fullmatch(r"s3://([^/]+)/*(.*)", prefix)
        if url:
            key = re.sub("/+", "/", _NO_LINE_BREAKS.sub("", url[2])).lstrip("/")
            if link.bucket in (None, url[1]):
                wanted = beside(bucket=url[1], prefix=key or DROP)
            else:
                wanted = ask("decision", f"bucket: {link.bucket} or {url[1]}, and prefix: {key}")
        elif "//" in prefix or _NO_LINE_BREAKS.search(prefix):
            wanted = write(re.sub("/+", "/", _NO_LINE_BREAKS.sub("", prefix)))
        else:
            continue
        yield Breach(
            (*_FOLDERS, folder, "prefix"),
            f"`{prefix}` is not the beginning of object keys: FSx gets s3://<bucket>/<prefix>/, "
            "and an empty part or a second scheme in it matches nothing.",
            wanted,
        )


@FSX.rule(
    57,
    "error",
    "Each event is named once",
    source="AWS::FSx::DataRepositoryAssociation (cfn-lint 1.58.0): Events has unique items",
)
def link_events(environment: Environment) -> Iterator[Breach]:
    for folder, link in environment.data_repositories.items():
        for key in ("import_events", "export_events"):
            events: tuple[str, ...] = getattr(link, key)
            twice = [event for event, times in Counter(events).items() if times > 1]
            if twice:
                yield Breach(
                    (*_FOLDERS, folder, key),
                    f"{', '.join(twice)} stands more than once; CloudFormation wants each event once.",
                    write(list(dict.fromkeys(events))),
                )


@FSX.rule(58, "warning", "A link moves something", source=f"{_CREATE}, S3 and BatchImportMetaDataOnCreate")
def link_idle(environment: Environment) -> Iterator[Breach]:
    for folder, link in environment.data_repositories.items():
        if not (link.import_events or link.export_events or link.import_existing):
            yield Breach(
                (*_FOLDERS, folder),
                f"`{folder}` neither lists what is in S3, nor imports, nor exports: nothing moves "
                "until somebody runs a data repository task by hand.",
                inside(import_existing=True) | inside(import_events=["new", "changed", "deleted"]),
            )


@FSX.rule(
    59,
    "warning",
    "What is exported into an existing bucket knows what is there",
    source="FSx for Lustre User Guide: Linking your file system to an S3 bucket",
)
def link_export_blind(environment: Environment) -> Iterator[Breach]:
    for folder, link in environment.data_repositories.items():
        if link.bucket and link.export_events and not (link.import_existing or link.import_events):
            yield Breach(
                (*_FOLDERS, folder, "import_existing"),
                f"`{folder}` exports to {link.bucket} and lists nothing from it: a new file of "
                "the same name replaces an object that nobody on the cluster has seen.",
                write(True).noting("or a prefix that nothing else writes to"),
            )


@FSX.rule(
    60,
    "error",
    "A file system that is linked to S3 has no automatic backups",
    source="FSx for Lustre User Guide: Protecting your data with backups",
)
def link_backups(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if not made or isinstance(made, ScratchLustre) or not environment.data_repositories:
        return
    days = made.backups.retention_days
    if days:
        yield Breach(
            (*LUSTRE, "backups", "retention_days"),
            f"backups kept for {days} days beside data_repositories: FSx backs up no file system "
            "that is linked to S3, because S3 is where its data is kept.",
            write(0).noting("with export_events: [new, changed] on what must be kept"),
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


def _prefixes(bucket: str | None, inner: str, outer: str) -> Remedy:
    """Prefixes after the folders in our own bucket; of another bucket only its user knows."""
    names = (inner.strip("/") or "data", outer.strip("/") or "all")
    if bucket:
        return ask("decision", f"prefix: {names[0]}/ in one and {names[1]}/ in the other")
    return anywhere(
        {(*_FOLDERS, key, "prefix"): f"{name}/" for key, name in zip((inner, outer), names, strict=True)}
    )

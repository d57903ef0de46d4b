"""Rules on: backups of file systems and of the accounting database."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.remedy import beside, drop, relative, write
from ultracluster.config.storage import Backups, NewOpenZfs, RdsMySql
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import DATA, FSX
from ultracluster.rules.sources import BOTOCORE

_DAYS = 7  # a mistake made before a weekend is noticed after it


@FSX.error(32, f"{BOTOCORE} fsx: CreateFileSystemLustreConfiguration, AutomaticBackupRetentionDays")
def backup_window(system: LustreFacts | NewOpenZfs) -> Breaches:
    """A start time of backups comes with a retention."""
    backups = system.backups
    if backups and backups.start_time is not None and backups.retention_days == 0:
        linked = isinstance(system, LustreFacts) and bool(system.data_repositories)  # has no backups: FSX060
        yield at("backups", "start_time").breach(
            f"backups start at {backups.start_time} and are kept for 0 days, which is no "
            "backups: FSx refuses a window without a retention.",
            drop() if linked else beside(retention_days=_DAYS) | drop(),
        )


@FSX.error(60, "FSx for Lustre User Guide: Protecting your data with backups")
def linked_backups(lustre: LustreFacts) -> Breaches:
    """A file system that is linked to S3 has no automatic backups."""
    days = lustre.backups.retention_days if lustre.backups else 0
    if days and lustre.data_repositories:
        yield at("backups", "retention_days").breach(
            f"backups are kept for {days} days, and data_repositories are given: FSx backs up no file "
            "system that is linked to S3, because S3 is where its data is kept.",
            write(0).noting("with export_events: [new, changed] on what must be kept"),
        )


@DATA.warning(2, "FSx for Lustre User Guide: Protecting your data with backups")
def protected_lustre_copies(lustre: LustreFacts, environment: Environment) -> Breaches:
    """A protected Lustre file system has backups or exports to S3."""
    if not environment.protect or lustre.backups is None or lustre.backups.retention_days:
        return
    links = lustre.data_repositories
    if any(link.export_events for link in links.values()):
        return
    folder = next(iter(links), None)
    export: YamlPath = ("data_repositories", folder or "", "export_events")
    yield at().breach(
        "protect is on, and the file system has neither backups nor a folder that is exported to "
        "S3: checkpoints exist once, in one Availability Zone.",
        relative({export: ["new", "changed"]} if folder else {("backups", "retention_days"): _DAYS}),
    )


@DATA.warning(3, "FSx for OpenZFS User Guide: Protecting your data with backups")
def protected_homes_backups(settings: NewOpenZfs, environment: Environment) -> Breaches:
    """Protected home directories have backups."""
    if environment.protect and settings.backups.retention_days == 0:
        yield at("backups", "retention_days").breach(
            "protect is on and home directories have no backups: they exist once, in one zone.", write(_DAYS)
        )


@DATA.warning(4, "FSx and RDS User Guides: automatic backups are deleted after their retention")
def protected_backup_retention(backed_up: Backups | RdsMySql, environment: Environment) -> Breaches:
    """Protected backups are kept for a week."""
    match backed_up:
        case Backups(retention_days=days):
            key = "retention_days"
        case RdsMySql(backup_retention_days=days):
            key = "backup_retention_days"
    if environment.protect and 0 < days < _DAYS:
        yield at(key).breach(
            f"protect is on and backups are kept for {'one day' if days == 1 else f'{days} days'}: what "
            "was damaged before a long weekend has no good backup left when it is noticed.",
            write(_DAYS),
        )

"""Rules on: FSx for Lustre and OpenZFS.

What both kinds of file system share stands here; each further subject has a module beside this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import region
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import ask, beside, drop
from ultracluster.config.storage import Backups, ScratchLustre
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import FSX
from ultracluster.rules.storage.lustre import LUSTRE, new_lustre
from ultracluster.rules.storage.openzfs import OPENZFS, new_openzfs


@FSX.rule(
    34,
    "warning",
    "FSx is offered in the Region",
    source="cfn-lint 1.58.0: CloudFormation schemas by Region, AWS::FSx::FileSystem",
    by_hand="aws fsx describe-file-systems --region <region>",
)
def region_has_fsx(environment: Environment) -> Iterator[Breach]:
    home = region(environment.region)
    if home is None or home.fsx is not False:
        return
    for path, made in ((LUSTRE, new_lustre(environment)), (OPENZFS, new_openzfs(environment))):
        if made:
            yield Breach(
                path,
                f"CloudFormation was not seen to have AWS::FSx::FileSystem in {home.name}. If that "
                "still holds, the storage stack fails. The table may be behind AWS.",
                ask("action", "ask with the command of this rule, or choose another Region"),
            )


@FSX.rule(
    32,
    "error",
    "Backups that start at a time are kept for some days",
    source="botocore 1.44.5 fsx: CreateFileSystemLustreConfiguration, AutomaticBackupRetentionDays",
)
def backup_window(environment: Environment) -> Iterator[Breach]:
    for path, backups in _backups(environment):
        if backups.start_time is not None and backups.retention_days == 0:
            yield Breach(
                (*path, "backups", "start_time"),
                f"backups start at {backups.start_time} and are kept for 0 days, which is no "
                "backups: FSx refuses a window without a retention.",
                drop()
                if path == LUSTRE and environment.data_repositories
                else beside(retention_days=7) | drop(),
            )


def _backups(environment: Environment) -> Iterator[tuple[Path, Backups]]:
    made = new_lustre(environment)
    if made and not isinstance(made, ScratchLustre):
        yield LUSTRE, made.backups
    if zfs := new_openzfs(environment):
        yield OPENZFS, zfs.backups

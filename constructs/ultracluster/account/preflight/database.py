"""Ask whether RDS offers the version of the accounting database, which its first deploy names in full."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.account.aws import existing
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.storage import RdsMySql
from ultracluster.software.versions import Version

_WHAT = "version of the database"


def questions(situation: Situation) -> Iterator[Question]:
    database = situation.environment.storage.accounting_database
    if isinstance(database, RdsMySql):
        yield Question("storage", _WHAT, lambda: _version(situation, database.engine_version))


def _version(situation: Situation, wanted: str) -> Iterator[Row]:
    """RDS retires minor versions about a year after it has them; what runs by then it has raised itself."""
    series = wanted.rpartition(".")[0]
    pages = situation.client("rds").get_paginator("describe_db_engine_versions")
    offered = sorted(
        {
            str(version["EngineVersion"])
            for page in pages.paginate(Engine="mysql", DBParameterGroupFamily=f"mysql{series}")
            for version in page["DBEngineVersions"]
            if version.get("Status", "available") == "available"
        },
        key=Version,
    )
    if wanted in offered:
        yield Row(_WHAT, "green", f"MySQL {wanted}, the newest is {offered[-1]}")
    elif not offered:
        region = situation.environment.region
        yield Row(_WHAT, "unknown", f"RDS lists no version of MySQL {series} in {region}")
    elif _is_deployed(situation):
        yield Row(_WHAT, "green", f"MySQL {wanted} is retired; RDS raises that of the instance by itself")
    else:
        nearest = next((one for one in offered if Version(one) > Version(wanted)), offered[-1])
        yield Row(
            _WHAT,
            "red",
            f"RDS does not offer MySQL {wanted} any more; it has {', '.join(offered)}",
            f'write `storage.accounting_database.engine_version: "{nearest}"`',
        )


def _is_deployed(situation: Situation) -> bool:
    pages = situation.client("cloudformation").get_paginator("list_stack_resources")
    stack = situation.environment.stack_name("storage")
    return any(
        row["ResourceType"] == "AWS::RDS::DBInstance"
        and row["ResourceStatus"] not in ("CREATE_IN_PROGRESS", "CREATE_FAILED", "DELETE_COMPLETE")
        for page in existing(lambda: list(pages.paginate(StackName=stack))) or ()
        for row in page["StackResourceSummaries"]
    )

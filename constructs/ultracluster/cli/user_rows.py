"""Parts that `ultracluster users` and `apply users` share: accounts of an environment, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ultracluster.cli.accepted import load_accepted
from ultracluster.cli.environments import refuse
from ultracluster.cli.json_output import write_json
from ultracluster.model import Cluster, resolve
from ultracluster.model.people import People
from ultracluster.model.state_documents import users_document

if TYPE_CHECKING:
    from ultracluster.account.people.differences import Difference
    from ultracluster.cli.documents.people import UserRow


def cluster_of(environment: Any) -> Cluster:
    config = load_accepted(environment)
    cluster = resolve(config)
    if not cluster.traits.slurm:
        refuse(
            f"{environment}: {config.orchestrator.kind} has no accounts on nodes; there people are members "
            "of teams (docs/kubernetes.md)"
        )
    if not cluster.runs_scripts:
        refuse(f"{environment}: orchestrator.lifecycle is `none`: nothing on the nodes makes accounts")
    return cluster


def user_of(name: str, cluster: Cluster) -> Mapping[str, Any]:
    rows: list[dict[str, Any]] = users_document(cluster)["users"]
    return next(row for row in rows if row["name"] == name)


def user_row(
    known: People, name: str, user: Mapping[str, Any], difference: Difference | None = None
) -> UserRow:
    account = next((one for one in known.accounts if one.name == name), None)
    return {
        "name": name,
        "uid": int(user["uid"]),
        "gid": int(user["gid"]),
        "groups": list(user.get("groups", [])),
        "home": str(user.get("home", "")),
        "keys": len(user.get("keys", [])),
        "principals": list(account.principals) if account else [],
        "team": account.team if account else None,
        "change": difference.kind if difference else None,
        "details": list(difference.details) if difference else [],
    }


def write_users(
    cluster: Cluster,
    rows: list[UserRow],
    *,
    place: str | None = None,
    uploaded: bool = False,
    notes: Sequence[str] = (),
) -> None:
    write_json(
        "users",
        {
            "environment": cluster.name,
            "users": rows,
            "document": place,
            "uploaded": uploaded,
            "notes": list(notes),
        },
    )

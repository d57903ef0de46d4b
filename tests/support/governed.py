"""Shipped environments in a company's account: everything that its rules can ask for is asked for."""

from __future__ import annotations

from typing import Any

from rules_support import changed, environment_data

BOUNDARY = "arn:aws:iam::111122223333:policy/TeamBoundary"
PURPOSES = {
    name: f"00000000-0000-4000-8000-00000000000{number}"
    for number, name in enumerate(("volumes", "file_systems", "buckets", "logs", "secrets"))
}
"""Id of the key by purpose."""
BASES = {
    "hyperpod-slurm": "prod",
    "hyperpod-eks": "hyperpod-eks-p5",
    "eks": "eks-p5en",
    "pcs": "pcs-p6-b200",
    "parallelcluster": "parallelcluster-p5",
}
"""A shipped environment of each orchestrator."""
PATHS = {"pcs": "/aws-pcs/teams/", "parallelcluster": "/parallelcluster/teams/"}
"""Where its orchestrator takes no other path."""
PREFIX = "train-"


def governed(kind: str) -> dict[str, Any]:
    """The data of an environment of this orchestrator."""
    data = environment_data(BASES[kind])
    region = data["region"]
    keys = {name: {"arn": f"arn:aws:kms:{region}:111122223333:key/{key}"} for name, key in PURPOSES.items()}
    made = changed(
        data,
        {
            "governance": {
                "permissions_boundary": BOUNDARY,
                "role_path": PATHS.get(kind, "/teams/training/"),
                "role_prefix": PREFIX,
                "stack_prefix": PREFIX,
                "bootstrap_qualifier": "train",
            },
            "storage.keys": keys,
            "storage.key": ...,
        },
    )
    if kind == "parallelcluster":
        made["orchestrator"]["cluster_name"] = f"{PREFIX}p5"
    return made

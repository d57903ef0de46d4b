#!/usr/bin/env python
"""Rewrites change/parallelcluster_updates.json and its page from the schema of ParallelCluster's own package.

    python tools/parallelcluster_updates.py

Needs ParallelCluster's environment (`make setup-dev`). A test compares both with a fresh run.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "constructs" / "ultracluster" / "change" / "parallelcluster_updates.json"
PAGE = ROOT / "docs" / "parallelcluster-updates.md"
PYTHON = ROOT / ".venv-parallelcluster" / "bin" / "python"
SCRIPT = ROOT / "tests" / "support" / "parallelcluster" / "update_policies.py"
DATE = "2026-11-23"

WORDS = {
    "SUPPORTED": "nothing: it changes where it is",
    "SUPPORTED_UNLESS_ADC": "nothing; refused in the Regions us-iso*",
    "IGNORED": "nothing: not looked at",
    "QUEUE_UPDATE_STRATEGY": "`queue_update: drain` or `terminate`, which renew the queue's nodes; else a "
    "stopped compute fleet",
    "RESIZE_UPDATE_STRATEGY_ON_REMOVE": "nothing for what is added; `queue_update: terminate` or a stopped "
    "compute fleet for what goes, or shrinks",
    "MANAGED_PLACEMENT_GROUP": "a stopped compute fleet where a placement group of ParallelCluster's goes; "
    "else as the queue's other settings",
    "MANAGED_FSX": "nothing for more subnets; else `queue_update: drain` or `terminate`",
    "SHARED_STORAGE_UPDATE_POLICY": "nothing for file systems of FSx and EFS that are not ParallelCluster's; "
    "else stopped nodes; `/home` never changes",
    "COMPUTE_FLEET_STOP_ON_REMOVE": "nothing for what is added; a stopped compute fleet for what goes",
    "COMPUTE_FLEET_STOP": "a stopped compute fleet",
    "LOGIN_NODES_POOLS_UPDATE_POLICY": "nothing for a pool that is added; no login nodes for one that goes",
    "LOGIN_NODES_STOP": "no login nodes",
    "LOGIN_NODES_POOL_STOP": "no login nodes in the pool",
    "COMPUTE_AND_LOGIN_NODES_STOP": "a stopped compute fleet and no login nodes",
    "EXTRA_CHEF_ATTRIBUTES": "nothing for some of them; else refused",
    "READ_ONLY_RESOURCE_BUCKET": "refused",
    "UNSUPPORTED": "refused: a new cluster",
}
"""What an update of a key takes, by its policy."""
_HEAD = """# What each setting of ParallelCluster takes to change

Written by `tools/parallelcluster_updates.py` from the schema of aws-parallelcluster {version}, the newest
release that can be installed ([why](parallelcluster.md#releases)). `ultracluster diff` judges changes by the
same table and says what must be stopped first ([how](parallelcluster.md#updates)). "No login nodes" is
`count: 0` of their groups, deployed before.

| What it takes | Policy | Keys |
|---|---|---|
"""


def document() -> dict[str, Any]:
    """The document of parallelcluster_updates.json."""
    done = subprocess.run(  # noqa: S603
        [str(PYTHON), "-I", str(SCRIPT)], input="", capture_output=True, text=True, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    about = {
        "what": "What ParallelCluster asks of an update that changes a key of its configuration. Written by "
        "tools/parallelcluster_updates.py.",
        "date": DATE,
        "source": f"aws-parallelcluster {said['version']}, schemas/cluster_schema.py (update_policy) and "
        "config/update_policy.py of pcluster",
        "keys": "policy by key; `[]` is any element of a list of sections, and the policy there is for "
        "elements that come or go",
        "lists": "by which key the elements of such a list are known",
    }
    return {
        "about": about,
        "version": said["version"],
        "updatable_chef_attributes": said["updatable_chef_attributes"],
        "lists": {key: row["by"] for key, row in sorted(said["keys"].items()) if "by" in row},
        "keys": {key: row["policy"] for key, row in sorted(said["keys"].items())},
    }


def page(made: dict[str, Any]) -> str:
    """The table as a page, by what a change takes."""
    rows: list[str] = []
    for policy, words in WORDS.items():
        keys = [key for key, name in made["keys"].items() if name == policy]
        if keys:
            rows.append(f"| {words} | {policy} | {', '.join(f'`{key}`' for key in keys)} |")
    return _HEAD.format(version=made["version"]) + "\n".join(rows) + "\n"


def main() -> None:
    made = document()
    TABLE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page(made), encoding="utf-8")


if __name__ == "__main__":
    main()

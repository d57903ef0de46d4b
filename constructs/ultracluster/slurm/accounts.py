"""Teams as accounts of Slurm, for a cluster whose nodes do not pull documents: one script to run by hand.

It is what nodes run (lifecycle_scripts/files/slurm_accounts.py) with its document.
"""

from __future__ import annotations

from string import Template

from ultracluster.model import Cluster
from ultracluster.model.state_documents import document_text, teams_document
from ultracluster.scripts_folder import scripts_folder

PROGRAM = ("slurm_accounts.py", "slurm_accounts_difference.py")

_SCRIPT = Template("""\
#!/usr/bin/env bash
# Accounts of the teams of $name, for Slurm's database. Run it as an administrator of accounting (root on the
# controller) once slurmctld has registered the cluster: --dry-run prints what differs. It may run again after
# every change, and leaves alone what it did not make.
#
# slurmctld keeps to it with AccountingStorageEnforce=associations,limits,qos,safe, counts GPUs with
# AccountingStorageTRES=gres/gpu, weighs shares with PriorityType=priority/multifactor and
# PriorityWeightFairshare, PriorityWeightQOS above 0, and preempts with PreemptType=preempt/qos.
set -euo pipefail

folder=$$(mktemp -d)
trap 'rm -rf -- "$$folder"' EXIT
${files}python3 -IS "$$folder/slurm_accounts.py" "$$@" "$$folder/teams.json"
""")


def slurm_accounts(cluster: Cluster) -> str:
    """The script.

    Raises:
        ValueError: the environment has no Slurm, no teams, or not the accelerators that are asked for.
    """
    environment = cluster.environment
    if not environment.teams:
        raise ValueError("the environment has no `teams`: there are no accounts to make")
    if not cluster.keeps_accounts:
        raise ValueError("orchestrator.accounting.mode is `none`: there is nowhere to keep accounts")
    texts = {name: (scripts_folder() / "files" / name).read_text(encoding="utf-8") for name in PROGRAM}
    texts["teams.json"] = document_text(teams_document(cluster)).decode()
    files = "".join(
        f"cat >\"$folder/{name}\" <<'END_OF_FILE'\n{text}END_OF_FILE\n" for name, text in texts.items()
    )
    return _SCRIPT.substitute(name=environment.name, files=files)

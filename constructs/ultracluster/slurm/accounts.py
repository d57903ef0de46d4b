"""Teams as accounts of Slurm: a script of sacctmgr commands that may run again after every change.

A quota becomes the account's fair share, a limit its GrpTRES, priorities become QOS of the same names
(sacctmgr manual, Slurm 22.05 to 25.11).
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Template

from ultracluster.model import Cluster
from ultracluster.model.team_shares import DEFAULT_PRIORITY, PRIORITIES, quotas, total_amount

_HEAD = Template("""\
#!/usr/bin/env bash
# Accounts of the teams of $name, for Slurm's database. Run it as an administrator of accounting (root on the
# controller) once slurmctld has registered the cluster; run it again after every change. It adds and changes;
# remove by hand what is gone: sacctmgr delete account NAME, sacctmgr delete user NAME account=NAME.
#
# slurmctld keeps to it with AccountingStorageEnforce=associations,limits,qos,safe, counts GPUs with
# AccountingStorageTRES=gres/gpu, and weighs shares with PriorityType=priority/multifactor and
# PriorityWeightFairshare, PriorityWeightQOS above 0.
set -euo pipefail

cluster=$${1:-$$(sacctmgr --noheader --parsable2 show cluster format=cluster | head -n 1)}
[[ -n $$cluster ]] || {
  echo "accounting knows no cluster yet: start slurmctld, or name the cluster" >&2
  exit 1
}

# has ENTITY CONDITION...: accounting knows it
has() { [[ -n $$(sacctmgr --noheader --parsable2 show "$$@") ]]; }

# qos NAME PRIORITY
qos() {
  has qos where name="$$1" format=name || sacctmgr --immediate add qos "$$1"
  change qos where name="$$1" set priority="$$2"
}

# change ENTITY ...: sacctmgr ends with 1 where nothing was to be changed
change() {
  local said
  said=$$(sacctmgr --immediate modify "$$@" 2>&1) || grep -qi "nothing modified" <<<"$$said" || {
    echo "$$said" >&2
    return 1
  }
}

# account NAME FAIRSHARE GPUS: -1 is no limit
account() {
  has account where name="$$1" format=account ||
    sacctmgr --immediate add account "$$1" cluster="$$cluster" description="team $$1" organization=$name
  change account where name="$$1" cluster="$$cluster" set \\
    fairshare="$$2" grptres=gres/gpu="$$3" qos="$$PRIORITIES" defaultqos="$$DEFAULT_PRIORITY"
}

# user NAME ACCOUNT
user() {
  has assoc where user="$$1" account="$$2" cluster="$$cluster" format=user ||
    sacctmgr --immediate add user "$$1" account="$$2" cluster="$$cluster"
}

readonly PRIORITIES=$priorities DEFAULT_PRIORITY=$default
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
    head = _HEAD.substitute(name=environment.name, priorities=",".join(PRIORITIES), default=DEFAULT_PRIORITY)
    return head + "".join(f"{line}\n" for line in _lines(cluster))


def _lines(cluster: Cluster) -> Iterator[str]:
    for name, priority in PRIORITIES.items():
        yield f"qos {name} {priority}"
    for name, quota in quotas(cluster).items():
        team = cluster.environment.teams[name]
        limit = -1 if team.limit is None else total_amount(team.limit)
        yield f"account {name} {sum(quota.values())} {limit}"
        for user in team.users:
            yield f"user {user} {name}"


__all__ = ["slurm_accounts"]

"""Rules on HyperPod with Slurm, each broken and mended."""

from __future__ import annotations

from rules_support import EXISTING_DATABASE
from rules_table import Case, table_tests

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.rules import check
from ultracluster.rules.sets import HPS

LOGIN = {"role": "login", "instance_type": "m5.xlarge", "count": 2}
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "gpu"}
CLASSIC = {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}


DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}

GROUP_CASES = [
    Case(
        "HPS003",
        {"node_groups.second": LOGIN},
        "node_groups.second.role",
        "`login` is also a login group",
        "node_groups.login.count: 3 and remove node_groups.second",
        {"node_groups.login": ...},
    ),
    Case(
        "HPS007",
        {"node_groups.gpu.partition": "dev"},
        "node_groups.gpu.partition",
        "every compute node",
        "partition: gpu",
        {"node_groups.gpu.partition": "dev2"},
    ),
]

TYPE_CASES = [
    Case(
        "HPS054",
        {"node_groups.controller.patching": {"kind": "when-idle"}},
        "node_groups.controller.patching",
        "Accounting is also on that volume",
        "/opt/slurm/etc",
        {"node_groups.controller.patching": ...},
    ),
    Case(
        "HPS054",
        {
            "node_groups.controller.patching": {"kind": "when-idle"},
            "storage.accounting_database": DATABASE,
        },
        "node_groups.controller.patching",
        "hand edits of slurm.conf",
        "/opt/slurm/etc",
        {"node_groups.controller.patching": ...},
    ),
]

CLUSTER_CASES = [
    Case(
        "HPS060",
        {"orchestrator.slurm_config_strategy": "merge"},
        "orchestrator.slurm_config_strategy",
        "refuses any strategy",
        "remove slurm_config_strategy",
        {"orchestrator.slurm_config_strategy": ...},
    ),
    Case(
        "HPS061",
        {"orchestrator.provisioning": "classic"},
        "orchestrator.slurm_config_strategy",
        "AWS's own pages disagree",
        "slurm_config_strategy: merge",
        {"orchestrator.slurm_config_strategy": "merge"},
    ),
    Case(
        "HPS062",
        {**CLASSIC, "storage.accounting_database": DATABASE},
        "storage.accounting_database",
        "only accepts one with continuous provisioning",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous"},
    ),
    Case(
        "HPS063",
        {"storage.accounting_database": EXISTING_DATABASE},
        "storage.accounting_database",
        "a cluster `dev` has written to accounting.example.internal",
        "cluster_name: dev-2",
        {"storage.accounting_database": DATABASE},
    ),
    Case(
        "HPS064",
        {"orchestrator.lifecycle": "on-create"},
        "orchestrator.lifecycle",
        "mount the file systems, move containers to large disks, start munge and Slurm, and leave out the "
        "rest: slurmdbd with its database, and so accounts and limits of teams, ssh keys between nodes, "
        "pam_slurm_adopt, SSSD, prolog and epilog with DCGM's map of jobs, log rotation",
        "on-init-complete",
        {"orchestrator.lifecycle": "on-init-complete"},
    ),
    Case(
        "HPS069",
        {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"},
        "orchestrator.provisioning",
        "the API has no value for `classic`",
        "continuous",
        {"orchestrator.provisioning": "continuous", "orchestrator.slurm_config_strategy": ...},
    ),
    Case(
        "HPS067",
        {"orchestrator.lifecycle": "on-create", "storage.accounting_database": EXISTING_DATABASE},
        "orchestrator.lifecycle",
        "slurmdbd.conf is not written",
        "on-init-complete",
        {"orchestrator.lifecycle": "on-init-complete"},
    ),
    Case(
        "HPS068",
        {"storage.accounting_database": EXISTING_DATABASE},
        "storage.accounting_database",
        "made after 2026-08-30",
        "acknowledge this for a new cluster",
        {"storage.accounting_database": ...},
    ),
    Case(
        "HPS070",
        {"orchestrator.node_roles": "one", "storage.accounting_database": EXISTING_DATABASE},
        "orchestrator.node_roles",
        "whoever gets the credentials of any node",
        "node_roles: each",
        {"orchestrator.node_roles": "each"},
    ),
]

CASES = [*GROUP_CASES, *TYPE_CASES, *CLUSTER_CASES]


test_breaks, test_mended, test_advice_works, test_every_rule_is_broken_once = table_tests(HPS, cases=CASES)


def test_settings_are_judged_without_a_file() -> None:
    findings = check(HyperPodSlurm(kind="hyperpod-slurm", provisioning="classic"))

    assert {(one.code, one.path) for one in findings} == {
        ("HPS061", ("slurm_config_strategy",)),
        ("HPS069", ("provisioning",)),
        ("HYP066", ("provisioning",)),
    }

"""The sets of rules, one per subject, in the order in which docs/rules.md has them."""

from __future__ import annotations

from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM
from ultracluster.rules.engine import RuleSet

ENV = RuleSet("ENV", "The environment as a whole")
NET = RuleSet("NET", "Network and IP budget")
GRP = RuleSet("GRP", "Node groups")
EFA = RuleSet("EFA", "EFA")
FSX = RuleSet("FSX", "FSx for Lustre and OpenZFS")
MNT = RuleSet("MNT", "Mounts", kinds=SLURM)
DATA = RuleSet("DATA", "Keys, retention and the accounting database")
HYP = RuleSet("HYP", "HyperPod", kinds=HYPERPOD)
HPS = RuleSet("HPS", "HyperPod with Slurm", kinds=frozenset({"hyperpod-slurm"}))
HPE = RuleSet("HPE", "HyperPod on EKS", kinds=frozenset({"hyperpod-eks"}))
EKS = RuleSet("EKS", "Kubernetes on EKS", kinds=KUBERNETES)
PCL = RuleSet("PCL", "ParallelCluster", kinds=frozenset({"parallelcluster"}))
PCS = RuleSet("PCS", "AWS PCS", kinds=frozenset({"pcs"}))
TEA = RuleSet("TEA", "Teams")
SOF = RuleSet("SOF", "Software release")
IMG = RuleSet("IMG", "Machine images")

RULE_SETS: tuple[RuleSet, ...] = (
    ENV, NET, GRP, EFA, FSX, MNT, DATA, HYP, HPS, HPE, EKS, PCL, PCS, TEA, SOF, IMG,
)  # fmt: skip

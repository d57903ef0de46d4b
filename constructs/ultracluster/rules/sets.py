"""The sets of rules, one per subject, in the order in which docs/rules.md has them."""

from __future__ import annotations

from collections.abc import Callable

from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS, Traits
from ultracluster.rules.engine import RuleSet


def kinds_with(trait: Callable[[Traits], bool]) -> frozenset[OrchestratorKind]:
    """The orchestrators of which a trait is true, for rules that are only about these."""
    return frozenset(kind for kind, traits in TRAITS.items() if trait(traits))


HYPERPOD = kinds_with(lambda traits: traits.hyperpod)
KUBERNETES = kinds_with(lambda traits: traits.kubernetes)
SLURM = kinds_with(lambda traits: traits.slurm)

ENV = RuleSet("ENV", "The environment as a whole")
CPY = RuleSet("CPY", "Environments beside each other")
NET = RuleSet("NET", "Network and IP budget")
GRP = RuleSet(
    "GRP", "Node groups", retired={39: "IMG007 says it of every group that lacks its image in the lock"}
)
EFA = RuleSet("EFA", "EFA")
FSX = RuleSet("FSX", "FSx for Lustre and OpenZFS")
MNT = RuleSet("MNT", "Mounts", kinds=SLURM)
DATA = RuleSet("DATA", "Keys, retention and the accounting database")
HYP = RuleSet("HYP", "HyperPod", kinds=HYPERPOD)
HPS = RuleSet("HPS", "HyperPod with Slurm", kinds=frozenset({"hyperpod-slurm"}))
HPE = RuleSet("HPE", "HyperPod on EKS", kinds=frozenset({"hyperpod-eks"}))
EKS = RuleSet(
    "EKS",
    "Kubernetes on EKS",
    kinds=KUBERNETES,
    retired={43: "the GPU operator's MIG manager knows the profiles of every GPU since v26.7.0"},
)
PCL = RuleSet(
    "PCL",
    "ParallelCluster",
    kinds=frozenset({"parallelcluster"}),
    retired={24: "GRP027 says the same for every orchestrator"},
)
PCS = RuleSet("PCS", "AWS PCS", kinds=frozenset({"pcs"}))
SLU = RuleSet("SLU", "Slurm's configuration, topology and health")
TEA = RuleSet("TEA", "Teams")
USR = RuleSet("USR", "People on the nodes")
SOF = RuleSet("SOF", "Software release")
IMG = RuleSet("IMG", "Machine images")
STP = RuleSet("STP", "Node steps of your own")
OBS = RuleSet("OBS", "What watches the cluster")
GOV = RuleSet("GOV", "A company's rules for its accounts")

RULE_SETS: tuple[RuleSet, ...] = (
    ENV, CPY, NET, GRP, EFA, FSX, MNT, DATA, HYP, HPS, HPE, EKS, PCL, PCS, SLU, TEA, USR, SOF, IMG, STP, OBS,
    GOV,
)  # fmt: skip

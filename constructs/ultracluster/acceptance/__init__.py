"""Is the fabric what was paid for: logs of nccl-tests and NCCL, judged against published figures.

Nothing here but the standard library and the catalogue.
"""

from ultracluster.acceptance.curves import Figure, Gate, figures, gates
from ultracluster.acceptance.job import manifest
from ultracluster.acceptance.judge import judge
from ultracluster.acceptance.log_reader import parse, read
from ultracluster.acceptance.node_tools import slurm_script
from ultracluster.acceptance.report import Check, Curve, Report
from ultracluster.acceptance.runs import Logs, Run

__all__ = [
    "Check",
    "Curve",
    "Figure",
    "Gate",
    "Logs",
    "Report",
    "Run",
    "figures",
    "gates",
    "judge",
    "manifest",
    "parse",
    "read",
    "slurm_script",
]

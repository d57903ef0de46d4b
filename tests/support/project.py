"""Where the project is, and which environments it ships or holds beside them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = [
    "dev",
    "eks-p5en",
    "eks-trn2",
    "hyperpod-eks-p5",
    "parallelcluster-gb200",
    "parallelcluster-p5",
    "pcs-p6-b200",
    "prod",
    "trainium",
]
"""The shipped ones, which every test is about."""
OWN = sorted({file.stem for file in (ROOT / "environments").glob("*.yaml")} - set(ENVIRONMENTS))
"""Those of a fork: checked like the shipped ones, and held to a snapshot where there is one."""


def environments_of(*kinds: str) -> list[str]:
    """Names of the shipped environments of these orchestrators."""
    shipped = {name: ROOT / "environments" / f"{name}.yaml" for name in ENVIRONMENTS}
    return [
        name for name, file in shipped.items() if any(f"kind: {kind}\n" in file.read_text() for kind in kinds)
    ]

"""Where the project is, and what it ships."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = (
    "dev", "eks-p5en", "eks-trn2", "hyperpod-eks-p5", "parallelcluster-gb200", "parallelcluster-p5",
    "pcs-p6-b200", "prod", "trainium",
)  # fmt: skip
"""The examples. What else lies in environments/ is a fork's own."""
ENVIRONMENTS = sorted(file.stem for file in (ROOT / "environments").glob("*.yaml"))
CLOSED = [
    name for name in ENVIRONMENTS if "egress: closed" in (ROOT / "environments" / f"{name}.yaml").read_text()
]
"""Those without a way to the internet."""


def environments_of(*kinds: str) -> list[str]:
    """Names of the shipped environments of these orchestrators."""
    shipped = {name: ROOT / "environments" / f"{name}.yaml" for name in ENVIRONMENTS}
    return [
        name for name, file in shipped.items() if any(f"kind: {kind}\n" in file.read_text() for kind in kinds)
    ]

"""Rules on: the role of PCS's nodes where a company places and names roles."""

from __future__ import annotations

from ultracluster.config.governance import Governance
from ultracluster.config.remedy import anywhere, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GOV, PCS
from ultracluster.rules.sources import PCS_GUIDE


@GOV.error(
    2,
    f"{PCS_GUIDE}: Create an instance profile for AWS PCS (path /aws-pcs/, or a name that "
    "starts with AWSPCS)",
    "2026-11-22",
    kinds=PCS.kinds,
)
def node_role_known_to_pcs(governance: Governance) -> Breaches:
    """PCS knows the role of its nodes by path or name."""
    path, prefix = governance.role_path, governance.role_prefix or ""
    # without a path, that of the nodes' role stays /aws-pcs/
    if path and "/aws-pcs/" not in path and not prefix.startswith("AWSPCS"):
        yield at("role_path").breach(
            f"with the path {path} and names that begin with `{prefix}` PCS refuses the nodes' instance "
            "profile: the role is to be below /aws-pcs/, or its name to begin with AWSPCS.",
            write(f"/aws-pcs{path}") | anywhere({("governance", "role_prefix"): f"AWSPCS-{prefix}"[:30]}),
        )

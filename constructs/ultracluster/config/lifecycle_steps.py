"""A team's own node steps, as an environment names them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ultracluster.config.base import SEEN

StepFile = Annotated[
    str,
    Field(pattern=f"^{SEEN}+\\.sh$", max_length=1024, examples=["./lifecycle_steps/10_proxy.sh"]),
]
"""Path of a step, from the folder of the file that names it."""
StepName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=30, examples=["proxy"])]
"""What a step is called: `proxy` of `10_proxy.sh`."""

"""Rules on: the settings of HyperPod's extension, which are passed on as they are."""

from __future__ import annotations

import json

from ultracluster.config.observability import Extension, Observability
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import ask, drop
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.observability.workspace import DATE
from ultracluster.rules.sets import HPS, OBS
from ultracluster.rules.sources import BOTOCORE

MOST_CHARACTERS = 10_240
"""Of the configuration's JSON."""
_API = f"SageMaker API Reference, CreateClusterExtension ({BOTOCORE})"
_OWN = "this configuration: observability.extension is the service's document, as it is"


@OBS.error(30, f"{_API}; {_OWN}", DATE)
def extension_supported(wanted: Observability, cluster: Cluster) -> Breaches:
    """The extension's settings belong to a service that has such an extension."""
    if wanted.extension is None:
        return
    if not isinstance(cluster.settings, HyperPodSlurm):
        why = f"{cluster.traits.kind} takes no such extension: it is HyperPod's on Slurm"
    elif wanted.kind != "hyperpod":
        why = f"kind is {wanted.kind}, and the extension never runs beside other exporters"
    else:
        return
    yield at("extension").breach(f"{why}.", drop())


@OBS.error(31, _API, DATE, kinds=HPS.kinds)
def extension_length(extension: Extension) -> Breaches:
    """The extension's configuration is not too long."""
    length = len(json.dumps(extension.configuration, separators=(",", ":"), ensure_ascii=False))
    if length > MOST_CHARACTERS:
        yield at("configuration").breach(
            f"as JSON it has {length:,} characters; AWS takes {MOST_CHARACTERS:,} at most.",
            ask("decision", "fewer settings: what is left out keeps the extension's default"),
        )

"""What a user may ask for: models, the YAML loader, the JSON Schema."""

from ultracluster.config.environment import Environment
from ultracluster.config.findings import Finding, InvalidEnvironmentError, Location, render
from ultracluster.config.loader import Loaded, load, parse

__all__ = [
    "Environment",
    "Finding",
    "InvalidEnvironmentError",
    "Loaded",
    "Location",
    "load",
    "parse",
    "render",
]

"""What a user may ask for: models, the YAML loader, the JSON Schema."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ultracluster.config.environment import Environment
    from ultracluster.config.findings import Finding, InvalidEnvironmentError, Location, render
    from ultracluster.config.loader import Loaded, load, parse
else:
    _HOMES = {"Environment": "environment", "Loaded": "loader", "load": "loader", "parse": "loader"}

    def __getattr__(name: str) -> Any:
        """Look a name up when it is used: models take half of the time that `ultracluster --help` has."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'findings')}"), name)


__all__ = [
    "Environment", "Finding", "InvalidEnvironmentError", "Loaded", "Location", "load", "parse", "render",
]  # fmt: skip

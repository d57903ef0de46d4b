"""How long a node takes to install a component; `install_minutes.json` next to it has the estimates."""

from __future__ import annotations

from ultracluster.catalog.files import catalog_file


def install_minutes(component: str, kind: str) -> float:
    """Minutes, an estimate: of the component itself, else of what is installed in its way (`source`)."""
    table = catalog_file("install_minutes")
    return table["components"].get(component, table["kinds"][kind])

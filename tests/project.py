"""Where the project is, and what it ships."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = sorted(file.stem for file in (ROOT / "environments").glob("*.yaml"))

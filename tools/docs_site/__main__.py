"""Builds the documentation site: `python -m tools.docs_site [FOLDER]`, by default site/.

Any warning is an error, as are links and anchors that lead nowhere. The site needs no server and no network.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from tools.docs_site.navigation import PageError
from tools.docs_site.sources import Sources

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def build(site: Path, work: Path, *, jobs: str = "auto") -> None:
    """Write the site to `site`, with `work` for what it is made of; where that fails, an older one stays.

    Args:
        jobs: processes of Sphinx: each has to be given what the others read, and computes some of it again.

    Raises:
        PageError: something else lies there, a page or a link is wrong, or Sphinx warns of something.
    """
    if (
        site.exists()
        and not (site / "searchindex.js").is_file()
        and (not site.is_dir() or any(site.iterdir()))
    ):
        raise PageError(f"{site} is there and is no site: name another folder")
    sources, made = work / "sources", work / "html"
    Sources(ROOT, sources).write()
    pages(sources, made, work / "trees", jobs)
    shutil.rmtree(site, ignore_errors=True)
    site.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, site)


def pages(sources: Path, site: Path, trees: Path, jobs: str = "auto") -> None:
    """Let Sphinx make pages of the sources.

    Raises:
        PageError: Sphinx warns of something.
    """
    shutil.rmtree(site, ignore_errors=True)
    options = ["--quiet", "--no-color", "--fresh-env", "--fail-on-warning", "--jobs", jobs]
    options += ["--builder", "html", "--conf-dir", str(HERE), "--doctree-dir", str(trees)]
    command = [sys.executable, "-m", "sphinx", *options, str(sources), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise PageError((done.stderr or done.stdout).replace(f"{sources}/", "").rstrip())
    for name in (".buildinfo", "objects.inv"):
        (site / name).unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.docs_site", description="Build the documentation site."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site")
    site = parser.parse_args().folder.resolve()
    try:
        build(site, ROOT / "build" / "site")
    except PageError as problem:
        sys.stderr.write(f"the site is not built:\n{problem}\n")
        return 2
    sys.stdout.write(f"{site / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

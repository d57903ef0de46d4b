"""A page to draw on with rich."""

from __future__ import annotations

from io import StringIO

from ultracluster.cli.console import Console
from ultracluster.cli.output import Drawn


class Paper:
    """A page to draw on with rich, whose text is then written at once."""

    def __init__(self, width: int | None, *, colour: bool, markup: bool = True) -> None:
        """
        Args:
            width: columns; None is that of the terminal.
            colour: whether the text is for a terminal.
        """
        self._target = StringIO()
        self.console = Console(
            file=self._target, width=width, force_terminal=colour, highlight=False, markup=markup
        )

    def text(self) -> Drawn:
        """What is on the page, without blanks at the ends of lines."""
        return Drawn("\n".join(line.rstrip() for line in self._target.getvalue().splitlines()) + "\n")

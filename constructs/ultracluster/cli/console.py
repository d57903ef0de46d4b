"""The console of rich as every command uses it: what it is given to draw is made visible first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from ultracluster.cli.terminal import WrappedStream
from ultracluster.config.plain_text import visible


class Console(rich.console.Console):
    """Control characters in what is drawn become escapes; those with which rich draws stay."""

    @property
    def file(self) -> IO[str]:
        stream: Any = super().file
        return stream.stream if isinstance(stream, WrappedStream) else stream

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **how: Any) -> Text:
        """Before the room that it takes is measured."""
        return super().render_str(visible(text), **how)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """And of texts that are objects of rich already."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

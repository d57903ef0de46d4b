"""Rows of a table in one test: a test for each of thousands costs more than what it asserts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_each(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], object] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but one test: it runs all rows and lists those that fail.

    For rows that share nothing but fixtures which no row changes; a row says what it is by itself.
    """
    listed = list(rows)
    assert listed, f"no row of {names}"
    keys = (names,) if isinstance(names, str) else names

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def every(**fixtures: Any) -> None:
            wrong: list[str] = []
            for row in listed:
                values = (row,) if isinstance(names, str) else row
                try:
                    test(**dict(zip(keys, values, strict=True)), **fixtures)
                except AssertionError as error:
                    wrong.append(f"{ids(row)}: {error}")
            assert not wrong, f"{len(wrong)} of {len(listed)} rows:\n" + "\n".join(wrong)

        signature = inspect.signature(test)
        rest = [one for name, one in signature.parameters.items() if name not in keys]
        every.__name__, every.__doc__, every.__module__ = test.__name__, test.__doc__, test.__module__
        every.__dict__ |= {"__signature__": signature.replace(parameters=rest)}
        every.__dict__ |= {"pytestmark": getattr(test, "pytestmark", [])}
        return every

    return decorate


__all__ = ["for_each"]

"""Settings of a construct in one form, however they were given: a model, or keyword arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import annotated_types
from pydantic import ValidationError

from ultracluster.config.base import Model
from ultracluster.config.shape_findings import refusal_of
from ultracluster.guard.tokens import holds_token

M = TypeVar("M", bound=Model)


def settings_of(model: type[M], config: M | None, given: Mapping[str, Any], *, construct: str) -> M:
    """Return what the construct was given, as the model of the configuration.

    Args:
        model: what flat settings are made into.
        config: the model itself, if that was given.
        given: flat settings by the names of the model's fields, only those that were given.
        construct: name of the construct's class, for errors.

    Raises:
        ValueError: both were given, or the settings have the wrong shape; names the setting and a remedy.
            Or the model is that of another construct.
    """
    if config is not None:
        if given:
            several = "are" if len(given) > 1 else "is"
            raise ValueError(
                f"{construct}: {', '.join(given)} {several} given beside config=; write it into the config, "
                f"e.g. config.model_copy(update={{'{next(iter(given))}': ...}}), or leave config= out"
            )
        if not isinstance(config, model):
            raise ValueError(
                f"{construct}: config= is of {type(config).__name__}; give one of {model.__name__}"
            )
        return config
    # the model takes whole numbers only, and a number that is not known yet is none
    unknown = {
        name: value for name, value in given.items() if isinstance(value, float) and holds_token(value)
    }
    known = {name: value for name, value in given.items() if name not in unknown}
    stand_ins = {name: _stand_in(model, name) for name in unknown}
    try:
        made = model.model_validate({**known, **stand_ins})
    except ValidationError as error:
        raise ValueError(refusal_of(model, dict(given), error, name=construct)) from None
    return made.model_copy(update=unknown) if unknown else made


def _stand_in(model: type[Model], name: str) -> int:
    """The smallest whole number that a field takes."""
    field = model.model_fields.get(name)
    for limit in _limits(field.annotation, field.metadata) if field else ():
        if isinstance(limit, annotated_types.Ge):
            return cast("int", limit.ge)
        if isinstance(limit, annotated_types.Gt):
            return cast("int", limit.gt) + 1
    return 1


def _limits(annotation: Any, metadata: Iterable[Any]) -> Iterable[Any]:
    for one in (*metadata, *getattr(annotation, "__metadata__", ())):
        yield from getattr(one, "metadata", None) or (one,)
    for inner in getattr(annotation, "__args__", ()):
        yield from _limits(inner, ())

"""Samples as lines in Prometheus' text format. One bad sample costs itself: node_exporter refuses a whole
file for a line that is wrong, and a whole scrape for one that is there twice. Python 3.9 and newer.
"""

import math
import re

_LABEL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_FORMATS_OWN = ("le", "quantile")
_LONGEST_VALUE = 200
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_MOST_BUCKETS = 32


class Histogram:
    """Counts below upper bounds, cumulative, as Prometheus has them; `+Inf` is `count`."""

    def __init__(self, buckets, total, count):
        self.buckets, self.total, self.count = buckets, total, count


def render(families, samples, most=5000):
    """The text of a file, and how many samples were left out.

    Args:
        families: type and help of each metric, by its name; a sample of another one is left out.
        samples: (name, labels, value), a value a number or a `Histogram`; of two alike the first counts.
        most: lines.
    """
    lines, seen, refused, total = {}, set(), 0, 0
    for name, labels, value in samples:
        kind = families.get(name, ("", ""))[0]
        found = _lines(name, kind, labels, value) if kind else None
        new = None if found is None else {line.rpartition(" ")[0] for line in found}
        if found is None or new & seen or total + len(found) > most:
            refused += 1
            continue
        seen |= new
        total += len(found)
        lines.setdefault(name, []).extend(found)
    text = []
    for name, found in lines.items():
        kind, said = families[name]
        text += [f"# HELP {name} {said}", f"# TYPE {name} {kind}", *found]
    return "\n".join([*text, ""]) if text else "", refused


def _lines(name, kind, labels, value):
    """None where the sample is none."""
    if not isinstance(labels, dict) or not all(map(_is_label, labels.items())):
        return None
    inner = [f'{key}="{_escaped(text)}"' for key, text in sorted(labels.items())]
    if kind == "histogram":
        return _histogram(name, inner, value) if isinstance(value, Histogram) else None
    told = _number(value, least=0.0 if kind == "counter" else None)
    return None if told is None else [_line(name, inner, told)]


def _histogram(name, inner, value):
    count, total = _number(value.count, 0.0), _number(value.total)
    if count is None or total is None or not isinstance(value.buckets, list):
        return None
    lines, last, most = [], -math.inf, 0.0
    for pair in value.buckets[:_MOST_BUCKETS]:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return None
        bound, below = _number(pair[0]), _number(pair[1], 0.0)
        # counts that fall, or bounds that do, are no histogram
        if bound is None or below is None or bound <= last or not most <= below <= count:
            return None
        last, most = bound, below
        lines.append(_line(f"{name}_bucket", [*inner, f'le="{_text(bound)}"'], below))
    lines.append(_line(f"{name}_bucket", [*inner, 'le="+Inf"'], count))
    return [*lines, _line(f"{name}_sum", inner, total), _line(f"{name}_count", inner, count)]


def _line(name, inner, value):
    return f"{name}{{{','.join(inner)}}} {_text(value)}" if inner else f"{name} {_text(value)}"


def _is_label(pair):
    name, value = pair
    if not isinstance(name, str) or not isinstance(value, str) or name in _FORMATS_OWN:
        return False
    return bool(_LABEL.fullmatch(name))


def _escaped(text):
    text = text[:_LONGEST_VALUE].encode("utf-8", "replace").decode("utf-8")
    return "".join(_ESCAPES.get(one) or (one if one.isprintable() else "?") for one in text)


def _number(value, least=None):
    """None where it is no finite number, or below the least."""
    if not isinstance(value, (int, float)):
        return None
    try:
        value = float(value) if not isinstance(value, int) else value + 0
        good = math.isfinite(value) and abs(value) < 1e300
    except OverflowError:
        return None
    return value if good and (least is None or value >= least) else None


def _text(value):
    return str(value) if isinstance(value, int) and abs(value) < 1 << 63 else repr(float(value))

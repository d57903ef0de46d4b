"""PromQL as text: which metrics an expression reads, and the same expression for one cluster."""

from __future__ import annotations

import pytest

from ultracluster.metrics.expressions import names, scoped


@pytest.mark.parametrize(
    ("expression", "read", "text"),
    [
        ("up", {"up"}, 'up{c="x"}'),
        ('up{job="node"} == 0', {"up"}, 'up{c="x", job="node"} == 0'),
        ("up{}", {"up"}, 'up{c="x"}'),
        (
            "sum by (node, up) (rate(a_total[5m])) / 3",
            {"a_total"},
            'sum by (node, up) (rate(a_total{c="x"}[5m])) / 3',
        ),
        ("sum(a) by (node)", {"a"}, 'sum(a{c="x"}) by (node)'),
        ("topk by (b) (1, node:a:avg)", {"node:a:avg"}, 'topk by (b) (1, node:a:avg{c="x"})'),
        ("a * on (b) group_left (c) d", {"a", "d"}, 'a{c="x"} * on (b) group_left (c) d{c="x"}'),
        (
            'label_replace(a, "b", "$1", "c", "(.+)")',
            {"a"},
            'label_replace(a{c="x"}, "b", "$1", "c", "(.+)")',
        ),
        ('count_values("xid", a offset 1h)', {"a"}, 'count_values("xid", a{c="x"} offset 1h)'),
        ('a{b=~"x{2}|}"} > 1e3 or 0x1F', {"a"}, 'a{c="x", b=~"x{2}|}"} > 1e3 or 0x1F'),
        ("quantile_over_time(0.5, a[1h:5m]) # b", {"a"}, 'quantile_over_time(0.5, a{c="x"}[1h:5m]) # b'),
        ("time() - a > bool NaN unless Inf", {"a"}, 'time() - a{c="x"} > bool NaN unless Inf'),
    ],
)
def test_an_expression_is_read_and_narrowed(expression: str, read: set[str], text: str) -> None:
    assert names(expression) == read
    assert scoped(expression, 'c="x"') == text

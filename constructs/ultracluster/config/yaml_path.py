"""Paths of values in an environment file."""

from __future__ import annotations

YamlPath = tuple[str | int, ...]


def dotted(path: YamlPath) -> str:
    """`("node_groups", "train", "mounts", 0)` as `node_groups.train.mounts[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part or not text:
            text += part if not text else f'."{part}"'
        else:
            text += f".{part}"
    return text

"""Our own symbols for pictures: white lines on a tile, so that a picture needs nothing that is not here."""

from __future__ import annotations

_COMPUTE, _STORAGE, _NETWORK, _SERVICE, _DATABASE = "#b85300", "#3f7d17", "#6b3fd6", "#0b7285", "#2f5bd0"

_CHIP = (
    '<rect x="6" y="6" width="12" height="12" rx="2"/><rect x="9.5" y="9.5" width="5" height="5" rx="1"/>'
    '<path d="M9 6V3M15 6V3M9 21v-3M15 21v-3M6 9H3M6 15H3M21 9h-3M21 15h-3"/>'
)
_CYLINDER = (
    '<ellipse cx="12" cy="5.5" rx="7" ry="2.5"/>'
    '<path d="M5 5.5v13c0 1.4 3.1 2.5 7 2.5s7-1.1 7-2.5v-13M5 12c0 1.4 3.1 2.5 7 2.5s7-1.1 7-2.5"/>'
)
SYMBOLS = {
    "nodes": (
        _COMPUTE,
        (
            '<rect x="3" y="8" width="13" height="13" rx="2"/><path d="M6 8V5.5a2 2 0 0 1 2-2h10.5'
            'a2 2 0 0 1 2 2V16a2 2 0 0 1-2 2H16"/><rect x="7" y="12" width="5" height="5" rx="1"/>'
        ),
    ),
    "node": (_COMPUTE, _CHIP),
    "lustre": (
        _STORAGE,
        (
            '<rect x="3" y="4" width="18" height="4.5" rx="1.2"/><rect x="3" y="10" width="18" '
            'height="4.5" rx="1.2"/><rect x="3" y="16" width="18" height="4.5" rx="1.2"/>'
            '<path d="M6.5 6.2h.01M6.5 12.2h.01M6.5 18.2h.01M11 6.2h7M11 12.2h7M11 18.2h7"/>'
        ),
    ),
    "openzfs": (
        _STORAGE,
        (
            '<path d="M3 7a2 2 0 0 1 2-2h4.5l2 2.5H19a2 2 0 0 1 2 2V18a2 2 0 0 1-2 2H5'
            'a2 2 0 0 1-2-2z"/><path d="M8 13.5h8"/>'
        ),
    ),
    "s3": (
        _STORAGE,
        (
            '<ellipse cx="12" cy="6" rx="8" ry="2.5"/><path d="M4 6l2.3 13c.2 1.2 2.7 2 5.7 2s5.5-.8'
            ' 5.7-2L20 6"/><path d="M5.2 12.5c4 2 9.6 2 13.6 0"/>'
        ),
    ),
    "database": (_DATABASE, _CYLINDER),
    "nat": (
        _NETWORK,
        '<path d="M10 4H5a1.5 1.5 0 0 0-1.5 1.5v13A1.5 1.5 0 0 0 5 20h5M9 12h11M16 8l4 4-4 4"/>',
    ),
    "endpoint": (
        _NETWORK,
        ('<circle cx="6" cy="12" r="3"/><circle cx="18" cy="12" r="3"/><path d="M9 12h6M6 9V4M18 20v-5"/>'),
    ),
    "internet": (
        _NETWORK,
        (
            '<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c2.7 2.6 4 5.6 4 9s-1.3 '
            '6.4-4 9c-2.7-2.6-4-5.6-4-9s1.3-6.4 4-9z"/>'
        ),
    ),
    "hyperpod": (
        _SERVICE,
        (
            '<path d="M12 2.5l8 4.7v9.6l-8 4.7-8-4.7V7.2z"/><circle cx="12" cy="12" '
            'r="2.6"/><path d="M12 9.4V2.5M14.3 13.3l5.7 3.5M9.7 13.3L4 16.8"/>'
        ),
    ),
    "eks": (
        _SERVICE,
        (
            '<circle cx="12" cy="12" r="7"/><circle cx="12" cy="12" r="2"/><path d="M12 2v8M12 14v8'
            'M2 12h8M14 12h8M5 5l5.6 5.6M13.4 13.4L19 19M19 5l-5.6 5.6M10.6 13.4L5 19"/>'
        ),
    ),
    "slurm": (
        _SERVICE,
        (
            '<path d="M4 6h10M4 12h16M4 18h7"/><circle cx="18.5" cy="6" r="1.7"/>'
            '<circle cx="15.5" cy="18" r="1.7"/>'
        ),
    ),
    "closed": (
        _NETWORK,
        (
            '<rect x="5" y="11" width="14" height="10" rx="2"/><path d="M8 11V7.5a4 4 0 0 1 8 '
            '0V11M12 15v2.5"/>'
        ),
    ),
}
"""Colour and lines of each, on a grid of 24."""


def symbol(name: str) -> str:
    """One symbol as an element of SVG, 44 pixels wide and high."""
    color, lines = SYMBOLS[name]
    return (
        f'<g><rect width="44" height="44" rx="9" fill="{color}"/>'
        '<g transform="translate(8.6 8.6) scale(1.117)" fill="none" stroke="#ffffff" stroke-width="1.6" '
        f'stroke-linecap="round" stroke-linejoin="round">{lines}</g></g>'
    )

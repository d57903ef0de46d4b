"""A plan as a picture: Region, VPC, zone, node subnet, and what is in them. SVG, or PNG made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ultracluster.config.file_write import write
from ultracluster.plan.environment_plan import GroupPlan, Plan
from ultracluster.plan.picture_canvas import DIM, Box, Canvas, card_height, shorten, text_width, wrap
from ultracluster.plan.picture_icons import PictureError, icon
from ultracluster.plan.picture_words import (
    compute_lines,
    cost_and_boot,
    file_system_lines,
    machine,
    placement_title,
    services,
)

WIDTH = 1200
"""Pixels of the SVG; the PNG has twice as many."""
NARROW = 912
"""Of one with nothing beside the VPC."""
_VPC_LEFT, _VPC_RIGHT = 32.0, 880.0
_SIDE, _SIDE_WIDTH = 924.0, 244.0
_GAP = 14.0
_REGION, _VPC, _ZONE, _PRIVATE, _PUBLIC, _PLACEMENT = (
    "#00807f", "#7a3ee0", "#106fa6", "#00807f", "#567309", "#b04f00",
)  # fmt: skip
"""Colours of AWS's group borders, darkened where text stands in them."""


def save_picture(plan: Plan, file: Path) -> None:
    """Write the picture of a plan as .svg or .png, whole or not at all.

    Raises:
        PictureError: the library for PNG or a font is not installed; or the file cannot be written.
    """
    svg = draw(plan)[0]
    data = png(svg) if file.suffix.lower() == ".png" else svg.encode()
    try:
        write(file, data)
    except OSError as error:
        raise PictureError(f"it cannot be written: {error.strerror}") from None


def draw(plan: Plan, *, icons: Callable[[str], str] = icon) -> tuple[str, Canvas]:
    """The picture of a plan as SVG, and the page that it was drawn on.

    Args:
        icons: a symbol by its name, as a `data:` URI or an element of SVG.
    """
    canvas = Canvas(WIDTH if _beside(plan) else NARROW, icons=icons)
    page = _Page(canvas, plan)
    return page.draw(), canvas


def _beside(plan: Plan) -> bool:
    """Whether anything stands in the right column."""
    lustre = plan.lustre is not None or bool(plan.further_lustre)
    return bool(services(plan.orchestrator)) or bool(plan.repositories and lustre)


def png(svg: str) -> bytes:
    """An SVG drawn at twice its size.

    Raises:
        PictureError: `resvg-py` or a font is not installed.
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise PictureError(
            "PNG requires the package `resvg-py`: pip install resvg-py; .svg does not"
        ) from None
    probe = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
    letter = "<text y='15' font-family=\"Arial, Helvetica, 'DejaVu Sans', sans-serif\">M</text>"
    if svg_to_bytes(svg_string=probe.format(letter)) == svg_to_bytes(svg_string=probe.format("")):
        raise PictureError(
            "none of the fonts Arial, Helvetica and DejaVu Sans is installed, so the PNG would have no text: "
            "install one (Debian: fonts-dejavu-core), or write .svg"
        )
    return svg_to_bytes(svg_string=svg, zoom=2)


class _Page:
    """Places everything from top to bottom, then draws the borders around it."""

    def __init__(self, canvas: Canvas, plan: Plan) -> None:
        self.canvas = canvas
        self.plan = plan
        self.side = 118.0
        """Where the next card of the right column may begin."""

    def draw(self) -> str:
        plan, canvas = self.plan, self.canvas
        canvas.text(20, 34, plan.name, size=20, bold=True)
        room = canvas.width - (WIDTH - 880)  # left of the internet
        kept = "protected" if plan.protect else "not protected"
        cost = plan.cost.short + " (estimate)" * (plan.cost.per_month is not None)
        size = f"{plan.orchestrator}, {plan.accelerators:,} accelerators, {cost}"
        canvas.text(20, 56, shorten(size, room, 13), color=DIM)
        canvas.text(20, 75, f"software release {plan.software}, {kept}", color=DIM)
        frames: list[tuple[Box, str, str, str, bool]] = []
        top = 150.0  # below the titles of Region, VPC and zone
        y = self._egress(top + 30, frames)
        subnet_top = y
        y += 34
        y = self._support(y)
        y = self._compute(y, frames)
        lustres, y = self._file_systems(y)
        y = self._endpoints(y)
        subnet = Box(60, subnet_top, 792, y - subnet_top)
        addresses = plan.addresses
        used = f"{addresses.total:,} of {addresses.usable:,} addresses"
        frames.append((subnet, f"Node subnet {addresses.subnet}, {used}", _PRIVATE, "#f1fafa", False))
        zone = Box(46, top, 820, subnet.bottom + _GAP - top)
        frames.append((zone, f"Zone {plan.zone_id}", _ZONE, "none", True))
        y = self._two_zones(zone.bottom + _GAP)
        vpc = Box(_VPC_LEFT, top - 30, _VPC_RIGHT - _VPC_LEFT, y - top + 30)
        existing = "" if plan.makes_vpc else " (existing)"
        frames.append((vpc, f"VPC {addresses.vpc}{existing}", _VPC, "none", False))
        self._service(subnet)
        self._repositories(lustres)
        region = Box(16, 88, canvas.width - 32, max(vpc.bottom, self.side) + _GAP - 88)
        account = f", account {plan.account}" if plan.account else ""
        frames.append((region, f"Region {plan.region}{account}", _REGION, "none", True))
        return self._assembled(frames, region.bottom + 16)

    def _assembled(self, frames: list[tuple[Box, str, str, str, bool]], height: float) -> str:
        """The borders belong below the cards: a second page has them, and what was drawn on top."""
        below = Canvas(self.canvas.width)
        for box, title, color, fill, dashed in reversed(frames):
            below.frame(box, title, color, fill=fill, dashed=dashed)
        self.canvas.put_below(below)
        plan = self.plan
        title = f"{plan.name}: {plan.orchestrator} in {plan.zone_id}"
        return self.canvas.svg(height, title)

    def _egress(self, y: float, frames: list[tuple[Box, str, str, str, bool]]) -> float:
        plan = self.plan
        if plan.egress != "nat":
            lines = ["No route to the internet", "AWS is reached through VPC endpoints only"]
            self.canvas.card(Box(74, y, 764, card_height(lines)), "closed", lines)
            return y + card_height(lines) + _GAP
        lines = ["NAT gateway", "the nodes' way out; nothing comes in"]
        card = Box(74, y + 32, 764, card_height(lines))
        if plan.makes_vpc:
            self.canvas.card(card, "nat", lines)
            frames.append((Box(60, y, 792, card.height + 46), "Public subnet", _PUBLIC, "#f6f9ee", False))
        else:
            card = Box(74, y, 764, card.height)
            self.canvas.card(card, "nat", ["NAT gateway of the VPC", "made elsewhere"])
        internet = Box(self.canvas.width - 32 - _SIDE_WIDTH, 12, _SIDE_WIDTH, card.height)
        self.canvas.card(internet, "internet", ["Internet", "software, containers"])
        across, up = card.y + card.height / 2, internet.x + _SIDE_WIDTH / 2
        way = [(card.right, across), (up, across)] if up > card.right else [(up, card.y)]
        self.canvas.line([*way, (up, internet.bottom)], DIM, ends="end")
        self.side = across + 2 * _GAP
        return card.bottom + 2 * _GAP

    def _support(self, y: float) -> float:
        """Controller, login and system groups, two in a row."""
        groups = [group for group in self.plan.groups if group.role != "compute"]
        for start in range(0, len(groups), 2):
            row = groups[start : start + 2]
            width = (764 - _GAP * (len(row) - 1)) / len(row)
            cards = [
                [
                    shorten(group.name, width - 76, 14, bold=True),
                    f"{group.role}: {group.nodes}",
                    f"{machine(group)}, {group.capacity}",
                    *_lines(cost_and_boot(self.plan, group), width - 76),
                ]
                for group in row
            ]
            height = max(map(card_height, cards))
            for place, lines in enumerate(cards):
                self.canvas.card(Box(74 + place * (width + _GAP), y, width, height), "node", lines)
            y += height + _GAP
        return y

    def _compute(self, y: float, frames: list[tuple[Box, str, str, str, bool]]) -> float:
        for group in self.plan.groups:
            if group.role != "compute":
                continue
            lines = [*compute_lines(group), cost_and_boot(self.plan, group)]
            card = Box(88, y + 30, 736, card_height(lines))
            self.canvas.card(card, "nodes", lines)
            self._nodes(card, group)
            frame = Box(74, y, 764, card.height + 42)
            title = placement_title(group)
            frames.append((frame, title, _PLACEMENT, "#fffaf4", True))
            y = frame.bottom + _GAP
        return y

    def _nodes(self, card: Box, group: GroupPlan) -> None:
        """A square for each node, hollow for those that come and go; at most 48."""
        shown = min(group.greatest, 48)
        left = card.right - min(shown, 16) * 14 - 8
        for number in range(shown):
            there = number < group.count
            box = Box(left + number % 16 * 14, card.y + 12 + number // 16 * 14, 10, 10)
            self.canvas.square(box, _PLACEMENT, filled=there)
        if group.greatest > shown:
            self.canvas.text(
                left, card.y + 12 + 3 * 14 + 12, f"and {group.greatest - shown:,} more", size=12, color=DIM
            )

    def _file_systems(self, y: float) -> tuple[dict[str, Box], float]:
        """Their cards; those of Lustre by name, the first without one."""
        plan = self.plan
        found = [("openzfs", plan.home), ("lustre", plan.lustre)]
        found += [("lustre", one) for one in plan.further_lustre]
        shown = [(symbol, file_system) for symbol, file_system in found if file_system is not None]
        if not shown:
            return {}, y
        width = (764 - _GAP * (len(shown) - 1)) / len(shown)
        y += 22  # for the line from the nodes
        cards = [
            (symbol, file_system, file_system_lines(file_system, width)) for symbol, file_system in shown
        ]
        height = max(card_height(lines) for *_, lines in cards)
        lustres: dict[str, Box] = {}
        for place, (symbol, file_system, lines) in enumerate(cards):
            box = Box(74 + place * (width + _GAP), y, width, height)
            self.canvas.card(box, symbol, lines)
            middle = box.x + box.width / 2
            self.canvas.line([(middle, y - 22 - _GAP + 4), (middle, y - 2)], DIM, ends="both")
            self.canvas.text(middle + 10, y - 12, file_system.fabric, size=12, color=DIM)
            if symbol == "lustre":
                lustres[file_system.name] = box
        return lustres, y + height + _GAP

    def _endpoints(self, y: float) -> float:
        endpoints = self.plan.endpoints
        if not endpoints:
            return y
        names = ", ".join(
            f"{endpoint.service}{' (gateway)' * (endpoint.kind == 'gateway')}" for endpoint in endpoints
        )
        count = f"{len(endpoints)} VPC endpoint{'s' * (len(endpoints) > 1)}"
        lines = [count, *wrap(names, 680)]
        self.canvas.card(Box(74, y, 764, card_height(lines)), "endpoint", lines)
        return y + card_height(lines) + _GAP

    def _two_zones(self, y: float) -> float:
        """What has subnets in two zones stands below the one zone of the nodes."""
        plan = self.plan
        if plan.accounting.startswith("RDS"):
            lines = ["Accounting database", plan.accounting]
            self.canvas.card(Box(74, y, 764, card_height(lines)), "database", lines)
            y += card_height(lines) + _GAP
        if plan.traits.kubernetes:
            lines = ["Interfaces of the Kubernetes control plane", "in subnets of their own, in two zones"]
            self.canvas.card(Box(74, y, 764, card_height(lines)), "endpoint", lines)
            y += card_height(lines) + _GAP
        return y

    def _service(self, subnet: Box) -> None:
        """What AWS runs of the orchestrator."""
        parts = services(self.plan.orchestrator)
        self.side = max(self.side, subnet.y + 34) if parts else self.side
        for symbol, lines in parts:
            box = Box(_SIDE, self.side, _SIDE_WIDTH, card_height(lines))
            self.canvas.card(box, symbol, lines)
            middle = box.y + box.height / 2
            self.canvas.line([(_SIDE, middle), (subnet.right, middle)], DIM, ends="end")
            self.side = box.bottom + _GAP

    def _repositories(self, lustres: dict[str, Box]) -> None:
        """S3 next to the file systems, each folder tied to its own."""
        repositories = self.plan.repositories
        if not lustres or not repositories:
            return
        room = _SIDE_WIDTH - 74
        y = max(self.side + _GAP, min(box.y for box in lustres.values()))
        for repository in repositories:
            lustre = lustres[repository.file_system]
            target = lustre.y + lustre.height / 2
            lines = [
                shorten(repository.folder, room, 14, bold=True),
                shorten(repository.bucket or "the data bucket", room, 12),
                shorten(repository.prefix or "/", room, 12),
            ]
            for verb, events in (
                ("imports", repository.import_events),
                ("exports", repository.export_events),
            ):
                if events:
                    lines += wrap(f"{verb} {', '.join(events)}", room)
            box = Box(_SIDE, y, _SIDE_WIDTH, card_height(lines))
            self.canvas.card(box, "s3", lines)
            middle = box.y + box.height / 2
            bus = 902.0
            way = [(_SIDE, middle), (bus, middle), (bus, target), (lustre.right, target)]
            # an arrow points to where the data goes
            if not repository.import_events and repository.export_events:
                way.reverse()
            both = bool(repository.import_events) == bool(repository.export_events)
            self.canvas.line(way, DIM, ends="both" if both else "end")
            y = box.bottom + _GAP
        self.side = y


def _lines(text: str, room: float) -> list[str]:
    """On one line, or on a line for each part where that does not fit."""
    parts = [text] if text_width(text, 12) <= room else text.split("; ")
    return [shorten(part, room, 12) for part in parts]


__all__ = ["NARROW", "WIDTH", "PictureError", "draw", "png", "save_picture"]

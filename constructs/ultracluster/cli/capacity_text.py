"""Offers of capacity in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultracluster.capacity.search import Offer


def offer_line(offer: Offer) -> str:
    """An offer in one line."""
    end = f"{offer.end:%Y-%m-%d %H:%M}" if offer.end else "?"
    return (
        f"{offer.per_hour:.3f} {offer.currency} per instance-hour, {offer.price:,.2f} in all  "
        f"{offer.wish.instance_type}  {offer.wish.kind}  {zones_of(offer)}  "
        f"{offer.start:%Y-%m-%d %H:%M} to {end} UTC{parts_of(offer)}  {offer.id}"
    )


def zones_of(offer: Offer) -> str:
    return ", ".join(offer.zones) + (f" (not {offer.wish.zone_id})" if offer.fits_zone is False else "")


def parts_of(offer: Offer) -> str:
    return f", in {len(offer.segments)} parts with breaks" if len(offer.segments) > 1 else ""

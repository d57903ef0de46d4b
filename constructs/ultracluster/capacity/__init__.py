"""Capacity of an account: offers searched, compared between Regions, bought, and what is owned."""

"""Bringing lifecycle scripts to where nodes find them."""

"""Rules on people: their ids, how they get in, and where they work."""

from ultracluster.rules.people import accounts, directory, entry, place, teams

__all__ = ["accounts", "directory", "entry", "place", "teams"]

"""Rules on node groups."""

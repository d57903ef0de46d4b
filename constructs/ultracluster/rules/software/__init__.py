"""Rules on software releases and machine images."""

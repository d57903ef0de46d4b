"""Rules on a team's own node steps."""

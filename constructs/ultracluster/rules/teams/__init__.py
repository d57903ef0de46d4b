"""Rules on teams."""

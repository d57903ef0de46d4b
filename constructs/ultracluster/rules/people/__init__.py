"""Rules on people: their ids, how they get in, and where they work."""

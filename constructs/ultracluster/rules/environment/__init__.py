"""Rules on the environment as a whole."""

"""Files of other tools, and clusters that run, as environments; with a list of what did not carry over."""

"""Rules on the network and its addresses."""

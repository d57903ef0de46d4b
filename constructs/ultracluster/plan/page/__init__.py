"""Pages of HTML: one file each, without scripts, with nothing loaded from elsewhere."""

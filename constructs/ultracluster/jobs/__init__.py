"""Jobs: their text for either scheduler, the queue that takes them, where they run."""

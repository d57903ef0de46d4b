"""Where EC2 placement is ours: network cards, placement groups, capacity and launch templates."""

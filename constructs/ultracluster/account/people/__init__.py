"""What a change of people means, before nodes pull it."""

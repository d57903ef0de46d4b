"""The nodes of a deployed environment: list, reboot, replace, delete."""

"""Constructs of clusters; one folder per orchestrator, and what several of them share."""

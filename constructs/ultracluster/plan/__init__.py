"""Figures that need no account: plan, cost, picture, choice of an orchestrator, drafts of environments."""

"""What schedules jobs: one module for each orchestrator."""

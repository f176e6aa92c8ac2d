"""Run one job: from its description to its record."""

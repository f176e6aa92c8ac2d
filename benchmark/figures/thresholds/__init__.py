"""Figures of what thresholds cost, and of what they guarantee."""

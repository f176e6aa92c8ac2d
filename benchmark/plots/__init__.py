"""Figures from the records of a results folder. Needs no torch."""

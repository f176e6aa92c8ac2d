"""Compute numbers from predictions: confidence scores, metrics and statistical tests. Needs no torch."""

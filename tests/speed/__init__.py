"""Benchmarks: ratios measured in one run. Not tests; nothing here is collected by pytest."""

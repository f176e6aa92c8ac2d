"""Forecast what a run will take before it starts: step times, device-hours, a simulated cluster."""

import benchmark.figures  # noqa: F401  (before matplotlib, whose backend it chooses)

"""Forecast what a run will take before it starts: step times, device-hours, a simulated cluster."""

import benchmark.figures as figures  # before matplotlib, whose backend it chooses

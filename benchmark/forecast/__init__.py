"""Forecast what a run will take before it starts: step times, device-hours, a simulated cluster."""

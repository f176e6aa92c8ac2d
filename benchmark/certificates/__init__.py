"""Certify thresholds of finished runs with held-out images, and show what became of them on test images (no torch)."""

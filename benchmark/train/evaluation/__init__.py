"""Evaluate finished runs beyond their test images. Nothing is trained here."""

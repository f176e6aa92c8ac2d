"""Bring in predictions that were made elsewhere: read them, check them, store them as trained runs. Needs no torch."""

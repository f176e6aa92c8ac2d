"""Figures from the records of a results folder. Needs no torch."""

import os

os.environ["MPLBACKEND"] = "agg"  # figures become files; a backend that the shell names may not even be there

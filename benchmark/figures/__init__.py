"""Draw figures from the records of a results folder. Needs no torch."""

import os

os.environ["MPLBACKEND"] = "agg"  # figures are only written to files; a backend named in the shell may not be installed

"""Say what is measured of an evaluation set, and measure it."""

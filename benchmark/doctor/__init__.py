"""Two minutes that show whether a device computes what it should, and how fast. No data is needed."""

"""Handle the published tables: their figures as data, the runs behind their columns, and ours beside them."""

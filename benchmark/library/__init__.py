"""All that the suite can do, as functions of values: a command calls one of them, and so can any program."""

"""One file per command: `HELP`, `add_arguments(parser)` and `run(arguments) -> exit code`.

A command turns its arguments into an options value, calls one function of the library with it, and prints the rest.
"""

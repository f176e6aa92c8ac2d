"""One file per command: `HELP`, `add_arguments(parser)` and `run(arguments, registry) -> exit code`."""

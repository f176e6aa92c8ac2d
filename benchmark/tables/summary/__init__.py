"""One table of several tasks: what each method changes against the baseline of the same seeds."""

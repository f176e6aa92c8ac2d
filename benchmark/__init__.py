"""The core of the suite: data, training, measuring and reporting. It knows no method by name."""

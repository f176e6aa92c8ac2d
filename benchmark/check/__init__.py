"""The contract of methods as a battery of checks."""

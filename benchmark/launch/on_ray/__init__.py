"""Run jobs on a Ray cluster: its workers, the connection to it, and attempts that publish what they made."""

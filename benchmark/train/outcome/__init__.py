"""End a job: find its final network, predict with it, and combine what several runs predicted."""

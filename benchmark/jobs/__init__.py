"""What is to be computed: jobs with their ids, and the plan that makes them from labels and seeds."""

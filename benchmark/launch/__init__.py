"""Many jobs: on this machine's workers or on a Ray cluster, with progress, retries and a clean stop."""

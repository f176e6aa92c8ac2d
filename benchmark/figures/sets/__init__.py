"""Draw what becomes of classifiers on evaluation sets: by severity, at fixed thresholds, on new classes, by group."""

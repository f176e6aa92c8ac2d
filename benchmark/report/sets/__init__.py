"""Show what becomes of classifiers on evaluation sets: small plots with one legend, and a grid of groups."""

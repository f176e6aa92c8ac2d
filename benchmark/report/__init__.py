"""Write one self-contained page for a results folder: tables, curves, comparisons, health, cost and provenance."""

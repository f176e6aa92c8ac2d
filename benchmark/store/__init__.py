"""The results folder: records, predictions and manifests, written whole or not at all. Needs no torch."""

"""What networks that were trained before need: their weights, what of them is frozen, their features."""

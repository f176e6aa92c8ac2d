"""A trained network with its score and its threshold, as a folder that other programs can use."""

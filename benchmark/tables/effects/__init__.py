"""Show what the ingredients of a crossed grid do: main effects and interactions, for each method and for all."""

"""Tasks: the settings of a data set, its network and its recipe, and the files they are read from."""

"""Sources of vectors: a vector of D numbers is an image of D channels of one pixel, so that all else stays as it is."""

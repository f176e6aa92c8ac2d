"""Search for a method's settings on held-out training images."""

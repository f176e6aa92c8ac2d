"""Load images from their sources, cache them, bring them to the device and augment them."""

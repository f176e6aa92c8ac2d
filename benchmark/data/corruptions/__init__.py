"""Make the corrupted test images of an evaluation set, on the device."""

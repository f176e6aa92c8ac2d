"""Find what the classifiers of a task are tried on beyond its test images: other images, people, groups."""

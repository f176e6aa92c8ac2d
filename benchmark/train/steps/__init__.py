"""What the steps of a training are made of: optimiser and rate, mixed images, flat minima, averaged weights."""

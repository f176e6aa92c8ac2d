"""What goes with every method: averaged weights, steps towards flat minima, mixed images."""

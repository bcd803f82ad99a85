"""Pictures of simulations and of searches; they alone need matplotlib."""

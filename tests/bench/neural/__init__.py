"""`make bench-neural`: models of the size of real ones, on the CPU."""

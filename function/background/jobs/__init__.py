"""Jobs: swaps that are done when there is time, whatever happens to the replica that took them."""

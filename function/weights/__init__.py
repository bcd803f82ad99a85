"""Files of weights that an operator has: looked at, converted, written into a manifest."""

"""Files of weights that an operator has: inspected, converted, written into a manifest."""

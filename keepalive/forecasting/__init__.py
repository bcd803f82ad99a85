"""What demand to expect, and how good such forecasts would have been."""

"""An account of every swap, refusal and change, in chained records."""

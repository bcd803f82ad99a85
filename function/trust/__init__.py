"""Trust: every swap says that it is one, asks before it is made, and can be accounted for."""

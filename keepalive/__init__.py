"""Everything that keeps enough replicas warm; it speaks to them over HTTP only."""

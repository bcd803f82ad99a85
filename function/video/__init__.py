"""Clips and animations: the same swap on every frame, with everything else kept as it is."""

"""Knative's pod autoscaler as a model: what it would decide, and when.

Written from Knative's documentation and from what its autoscaler was seen to do. `decider` is the
decision itself, `scaler` what becomes of it (bounds, scaling to zero), `windows` the averages that
both start from; `autoscaler` joins them and `replay` runs them over a load.
"""

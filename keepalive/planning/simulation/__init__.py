"""A day of traffic against a scaled service, simulated: what users wait, and what it costs.

`run` is the whole: each second the requests of that second go through `serving`, and a `scaling`
rule decides how many replicas the `fleet` has. Needs numpy; only `picture` needs matplotlib.
"""

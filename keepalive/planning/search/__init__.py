"""Which settings keep an objective at the least cost: a search over simulations.

`choice` is one set of settings, `profile` the floors that a load asks for, `search` looks for the
cheapest, `naive` has what people take without looking; `files` writes what is deployed.
"""

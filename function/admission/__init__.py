"""Who may have what of a replica, decided before any work: identity, tokens, lanes, deadlines.

Nothing here knows HTTP, photos or models.
"""

"""How outputs are marked: metadata, C2PA, a visible label."""

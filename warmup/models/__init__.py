"""The models of a replica: their manifest, the store on disk, and fetching into it."""

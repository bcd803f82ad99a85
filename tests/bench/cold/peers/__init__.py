"""One application for each peer, as its documentation says."""

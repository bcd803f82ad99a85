"""Where the URIs of requests may lead."""

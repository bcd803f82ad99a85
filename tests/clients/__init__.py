"""The clients: the Python one, and those that are generated from the OpenAPI document."""

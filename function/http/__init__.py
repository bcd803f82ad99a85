"""The HTTP surface: requests to service calls, results and problems to answers."""

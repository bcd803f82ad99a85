"""One module for each way to execute a model."""

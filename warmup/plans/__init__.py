"""TensorRT plans: what one depends on, building one, and finding one that was built before."""

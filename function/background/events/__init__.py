"""Events: a photo lands in a bucket, a swapped photo comes out, once."""

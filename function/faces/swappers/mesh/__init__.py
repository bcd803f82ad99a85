"""The embedded swap: a face warped onto another one, in its light; step after step."""

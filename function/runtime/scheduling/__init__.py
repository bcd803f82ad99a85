"""Who computes next: permits, slots for requests, queues and batches."""

"""GPUs: how they are chosen, their driver and memory, and what happens when one is lost."""

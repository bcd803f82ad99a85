"""A new image takes over, step by step, and only while it is as good as the old one."""

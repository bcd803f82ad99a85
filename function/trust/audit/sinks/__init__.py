"""Where lines of the audit go: standard output, a folder, a bucket by way of a spool."""

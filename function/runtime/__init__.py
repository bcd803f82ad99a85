"""How models are executed: threads, engines."""

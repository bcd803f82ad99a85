"""Everything between "process started" and "ready"; it knows nothing about faces."""

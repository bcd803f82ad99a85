"""The ways to swap a face, all behind one protocol."""

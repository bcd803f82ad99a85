"""An imperceptible mark in the pixels of swapped faces, or of a whole picture."""

"""What a face is and how one is swapped: pure code over arrays and engines."""

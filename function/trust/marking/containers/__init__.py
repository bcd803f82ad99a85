"""Where files keep XMP packets: one module for each kind of file, over bytes or a mapped file."""

"""Objects behind URIs: gs, https, file and data; read, fetched in ranges, and written."""

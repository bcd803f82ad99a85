"""The one composition root: settings to parts, and parts to a server, a service or a store."""

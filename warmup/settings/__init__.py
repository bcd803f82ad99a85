"""Settings from environment variables and TOML tables, declared once."""

"""The subcommands of `ember` that need the function itself. Nothing here is part of serving."""

"""`python -m keepalive`."""

from keepalive.cli import commands

if __name__ == "__main__":
    commands(prog_name="python -m keepalive")

"""`python -m warmup`."""

from warmup.cli import commands

if __name__ == "__main__":
    commands(prog_name="python -m warmup")

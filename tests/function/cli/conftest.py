"""What tests of commands share with those of what they command."""

from tests.function.background.jobs.conftest import redis
from tests.function.video.conftest import folder, plain

__all__ = ["folder", "plain", "redis"]

"""Options that several commands share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_VARIABLE = re.compile(r"\$\{(\w+)\}")
SECONDS = click.FloatRange(0, min_open=True)

push = click.option("--push", metavar="URL", help="Push metrics to this Pushgateway.")
metrics_file = click.option(
    "--metrics",
    "metrics_file",
    metavar="FILE.prom",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write metrics into this file, for a textfile collector.",
)
prometheus_url = click.option(
    "--prometheus", metavar="URL", help="Where Prometheus is, e.g. http://prometheus:9090."
)
prometheus_headers = click.option(
    "--prometheus-header",
    "prometheus_headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="A header to send to it, e.g. Authorization; may be repeated.",
)
selector = click.option(
    "--selector",
    metavar="MATCHERS",
    default="",
    help="Which replicas' metrics count, in PromQL, e.g. 'namespace=\"ember\"'.",
)


def headers(given: Iterable[str], hint: str) -> dict[str, str]:
    """Names and values, in which `${NAME}` stands for that variable of the environment.

    So a secret need not be among the arguments, which everybody on the machine can read. What is
    wrong is told without the value, which may be secret.

    Raises:
        click.BadParameter: one is none, or a variable is not set.
    """
    found = {}

    def of_the_environment(name: re.Match[str]) -> str:
        if (value := os.environ.get(name[1])) is None:
            raise click.BadParameter(f"{name[1]} is not set in the environment.", param_hint=hint)
        return value

    for words in given:
        text = _VARIABLE.sub(of_the_environment, words)
        name, colon, value = text.partition(":")
        if not (colon and name.strip() and text.isascii() and text.isprintable()):
            raise click.BadParameter("It looks like 'Name: value'.", param_hint=hint)
        found[name.strip()] = value.strip()
    return found


def combined(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add

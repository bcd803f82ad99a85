"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keepalive.prometheus import Prometheus
from keepalive.publish import publish
from keepalive.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Decorator = Callable[[Any], Any]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
SECONDS = click.FloatRange(0, min_open=True)

option = functools.partial(click.option, show_default=True)
service = option("--service", default="ember", help="The Knative Service.")
hpa = click.option("--hpa", help="A HorizontalPodAutoscaler in place of a Knative Service.")
selector = click.option(
    "--selector",
    metavar="MATCHERS",
    default="",
    help="Which replicas' metrics count, in PromQL, e.g. 'namespace=\"ember\"'.",
)


class Duration(click.ParamType[float]):
    """A number of seconds, or a duration such as 1m30s."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        text = str(value)
        try:
            return float(text) if text[-1:].isdigit() else duration(text)
        except ValueError:
            self.fail(f"{text!r} is no number of seconds such as 6 or 1m30s.", param, ctx)


def combined(*options: Decorator) -> Decorator:
    """Several options as one."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def converted(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Several options as one argument, which is made from their values.

    Args:
        name: of the argument.
        make: what it is made by, from the values by their names.
        options: of the command line.
    """
    names = inspect.signature(make).parameters

    def add(command: Any) -> Any:
        @functools.wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            given = {each: values.pop(each) for each in names}
            return command(*args, **values, **{name: make(**given)})

        return combined(*options)(run)

    return add


def headers(given: Iterable[str], hint: str) -> dict[str, str]:
    """Names and values, in which `${NAME}` stands for that variable of the environment.

    So a secret need not be among the arguments, which everybody on the machine can read. Messages
    about what is wrong do not show the value, which may be secret.

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


def header(help_: str) -> Decorator:
    """`--header`; the argument is a mapping."""
    return click.option(
        "--header",
        "headers",
        metavar="'NAME: VALUE'",
        multiple=True,
        callback=lambda _, __, given: headers(given, "--header"),
        help=help_,
    )


def _prometheus(prometheus: str | None, prometheus_headers: tuple[str, ...]) -> Prometheus | None:
    proof = headers(prometheus_headers, "--prometheus-header")
    return Prometheus(prometheus, proof) if prometheus else None


prometheus = converted(
    "prometheus",
    _prometheus,
    click.option(
        "--prometheus", metavar="URL", help="Where Prometheus is, e.g. http://prometheus:9090."
    ),
    click.option(
        "--prometheus-header",
        "prometheus_headers",
        metavar="'NAME: VALUE'",
        multiple=True,
        help="A header to send to it, e.g. Authorization; may be repeated.",
    ),
)
"""The argument is a `Prometheus`, or None."""


def _publisher(push: str | None, metrics_file: Path | None) -> Callable[..., None] | None:
    if not (push or metrics_file):
        return None
    return functools.partial(publish, file=metrics_file, gateway=push)


publisher = converted(
    "publisher",
    _publisher,
    click.option("--push", metavar="URL", help="Push metrics to this Pushgateway."),
    click.option(
        "--metrics",
        "metrics_file",
        metavar="FILE.prom",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write metrics into this file, for a textfile collector.",
    ),
)
"""The argument is `publish` without `file` and `gateway`, or None."""

"""`ember models inspect`, `batch`, `fp16` and `cutout`: single .onnx files."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function.cli.failure import Failure
from function.cli.files import protect
from function.exits import Exit
from function.runtime import installed
from warmup.extras import bring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.runtime.onnxfile import Graph, GraphValue

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), help="The file to write."
)
_FORCE = click.option("--force", is_flag=True, help="Overwrite what is there.")


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each file.")
def inspect(files: tuple[Path, ...], *, as_json: bool) -> None:
    """Say what .onnx files are: family, inputs and outputs, licence.

    Weights are not read. A graph of no known family is described all the same.
    """
    from function.runtime import onnxfile

    for n, path in enumerate(files):
        facts = _facts(onnxfile.read(path))
        if as_json:
            click.echo(json.dumps(facts))
        else:
            click.echo(("\n" if n else "") + "\n".join(_lines(facts)))


@click.command()
@click.argument("file", type=_FILE)
@_OUT
@_FORCE
def batch(*, file: Path, out: Path | None, force: bool) -> None:
    """Make a graph for one item take any number, if that gives the same results.

    FILE stays as it is. The new graph runs batches of 2 and 3, and must give what FILE gives for
    each item by itself. Otherwise nothing is written, and Ember runs FILE item by item.
    """
    with needing_onnx():
        from function.weights import batches
    out = place(out or file.with_suffix(".batch.onnx"), file, force=force)
    for line in batches.make(file, out):
        click.echo(f"  {line}")
    click.echo(f"{out}: batches give what single items give")


@click.command()
@click.argument("file", type=_FILE)
@_OUT
@_FORCE
@click.option(
    "--golden",
    multiple=True,
    type=_FILE,
    metavar="FILE.npy",
    help="A known input, one for each of the graph; random ones without it.",
)
@click.option(
    "--min-cosine",
    "least",
    type=click.FloatRange(-1, 1),
    default=0.999,
    show_default=True,
    help="How alike outputs must be.",
)
@click.option("--keep", multiple=True, metavar="OPERATOR", help="It stays in float32.")
@click.option("--half-inputs", is_flag=True, help="Inputs and outputs become float16 as well.")
def fp16(
    *,
    file: Path,
    out: Path | None,
    force: bool,
    golden: tuple[Path, ...],
    least: float,
    keep: tuple[str, ...],
    half_inputs: bool,
) -> None:
    """Convert a graph to float16, if its outputs stay nearly the same.

    That is half the bytes, and faster on a GPU; on a CPU it is slower. FILE stays as it is.
    """
    with needing_onnx():
        from function.weights import half
    out = place(out or file.with_suffix(".fp16.onnx"), file, *golden, force=force)
    inputs = half.read_inputs(golden)
    found = half.make(file, out, inputs=inputs, least=least, keep=keep, outside=half_inputs)
    sizes = " instead of ".join(f"{path.stat().st_size / 1e6:,.1f} MB" for path in (out, file))
    click.echo(f"{out}: {sizes}; outputs like those in float32 to {found:.6f} (cosine)")


@click.command()
@click.argument("file", type=_FILE)
@_OUT
@_FORCE
@click.option("--family", help="Of the network; found by its shapes and its name without it.")
@click.option(
    "--side",
    type=int,
    help="Of the cutouts, in pixels; half as much again as a face is made without it.",
)
def cutout(
    *, file: Path, out: Path | None, force: bool, family: str | None, side: int | None
) -> None:
    """Have a swapper or an enhancer cut faces out and put them back itself.

    Then a face crosses the bus to the GPU once each way, as bytes. Writes another graph, and says
    what its entry in the manifest needs. FILE stays as it is.
    """
    from function.faces.signatures import candidates, recognise
    from function.runtime import onnxfile

    with needing_onnx():
        from function.weights import cutout as made
    graph = onnxfile.read(file)
    found = next((each for each in candidates(graph) if each.family == family), None)
    if (known := found or (None if family else recognise(graph))) is None:
        several = ", ".join(dict.fromkeys(each.family for each in candidates(graph)))
        raise Failure(
            f"{file}: which family is it? --family says it: {several or 'none fits'}",
            Exit.BAD_INPUT,
        )
    out = place(out or file.with_suffix(".cutout.onnx"), file, force=force)
    side = made.make(file, out, known.role, known.family, side)
    with out.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    click.echo(f"{out}: makes of cutouts what {file.name} makes of crops. Its entry has")
    click.echo(f'  family = "{known.family}"\n  uri = "{out.absolute().as_uri()}"')
    click.echo(f'  size = {out.stat().st_size}\n  sha256 = "{digest}"')
    click.echo(f"  options = {{ cutout = {side} }}")


def _facts(graph: Graph) -> dict[str, Any]:
    """What is known of a graph, as JSON knows it."""
    from function.faces.signatures import candidates, recognise
    from function.weights.licences import LICENCES

    found = recognise(graph)
    licence = LICENCES[found.family] if found else None
    return {
        "file": str(graph.path),
        "size": graph.size,
        "role": found.role if found else None,
        "family": found.family if found else None,
        "candidates": [each.family for each in candidates(graph)],
        "inputs": _values(graph.inputs),
        "outputs": _values(graph.outputs),
        "items": graph.items,
        "precision": graph.precision or None,
        "weights": sum(each.size for each in graph.tensors),
        "external": any(each.outside for each in graph.tensors),
        "opset": graph.opset,
        "producer": graph.producer or None,
        "metadata": graph.metadata,
        "licence": licence.expression if licence else None,
        "vendor": licence.vendor if licence else None,
        "note": licence.note or None if licence else None,
    }


def _values(values: Sequence[GraphValue]) -> list[dict[str, Any]]:
    return [{"name": each.name, "kind": each.kind, "shape": each.dims} for each in values]


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    """The facts for people."""
    from function.weights.licences import LICENCES

    several = " or ".join(dict.fromkeys(facts["candidates"]))
    unknown = f"{several}: its name does not say which" if several else "unknown"
    family = f"{facts['family']}, for {facts['role']}" if facts["family"] else unknown
    outside = ", which lie in another file" if facts["external"] else ""
    items = "any number at once" if facts["items"] is None else f"{facts['items']} at once"
    yield _line("file", f"{facts['file']}, {facts['size'] / 1e6:,.1f} MB")
    yield _line("family", family)
    for name in ("inputs", "outputs"):
        for each in facts[name]:
            shape = ", ".join(map(str, each["shape"]))
            yield _line(name, f"{each['name']} {each['kind']} [{shape}]")
    yield _line("items", items)
    yield _line("weights", f"{facts['precision']}, {facts['weights'] / 1e6:,.1f} MB{outside}")
    yield _line("opset", f"{facts['opset']}, made by {facts['producer'] or 'somebody'}")
    for key, value in facts["metadata"].items():
        yield _line("metadata", f"{key}: {value}")
    if facts["family"]:
        yield _line("licence", f"of the published weights: {LICENCES[facts['family']]}")


def _line(name: str, value: str) -> str:
    return f"{name:10}{value}"


def place(out: Path, *read: Path, force: bool) -> Path:
    """A file that may be written, before the work that it is for.

    Args:
        out: the file.
        read: what is read, which is never written over.
        force: whether what is there may go.

    Raises:
        Failure: it is there and may not go, or its folder does not take it.
        UsageError: it is read from.
    """
    protect(out, read)
    folder = out.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(f"{folder} is no folder that can be written to.", Exit.CANNOT_WRITE)
    if out.exists() and not force:
        raise Failure(f"{out} is there already; --force overwrites it.", Exit.CANNOT_WRITE)
    return out


@contextmanager
def needing_onnx() -> Iterator[None]:
    """Say what to install when the body imports what is not there.

    Raises:
        UnavailableError: it is the runtime, with which what is made is compared.
        Failure: it is something else.
    """
    installed.check()
    try:
        yield
    except ModuleNotFoundError as error:
        raise Failure(f"This needs {error.name}: {bring('models')}", Exit.UNAVAILABLE) from None

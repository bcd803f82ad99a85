"""`make image-size`: what images weigh, by component, and whether they keep to their budgets.

The total is that of the layers as a registry holds them: compressed with zstd, the base included.
Components are compressed each by itself, so that their sum differs a little from the total.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGETS_MB = {"keepalive": 35, "cpu": 155, "gpu": 178, "gpu-ort": 1105, "gpu-both": 1125}
"""The most that all layers of an image may have together, compressed; MB are 10^6 bytes."""

_BASE = "base: Debian 12 and Python"
_COMPONENTS = {
    "usr/lib/python3": "standard library, compiled",
    "opt/ember/function/models/": "models",
    "opt/ember/function/": "Ember",
    "opt/ember/keepalive/": "Ember",
    "opt/ember/warmup/": "Ember",
    "opt/ember/onnxruntime": "ONNX Runtime",
    "opt/ember/tensorrt_lean": "TensorRT lean runtime",
    "opt/ember/cuda": "bindings to CUDA",
    "opt/ember/nvidia/cudnn/": "cuDNN",
    "opt/ember/nvidia/": "CUDA libraries",
    "opt/ember/cv2/": "OpenCV",
    "opt/ember/opencv_": "OpenCV",
    "opt/ember/numpy": "numpy",
    "opt/ember/PIL/": "Pillow",
    "opt/ember/pillow": "Pillow",
    "opt/ember/cryptography": "cryptography",
    "opt/ember/google": "Google Cloud Storage",
    "opt/ember/uvloop": "uvloop",
    "opt/ember/opentelemetry": "OpenTelemetry",
}
"""How the paths of a component begin; the first that fits counts."""
_REST = "aiohttp, click, rich and the rest"


@dataclass(slots=True)
class Weight:
    """How many bytes something has."""

    unpacked: int = 0
    packed: int = 0
    _packer: Any = field(default_factory=lambda: zstandard.ZstdCompressor(3).compressobj())

    def add(self, data: bytes) -> None:
        """Count the content of a file."""
        self.unpacked += len(data)
        self.packed += len(self._packer.compress(data))

    def close(self) -> None:
        """Count what the compressor still holds."""
        self.packed += len(self._packer.flush())


@dataclass(frozen=True, slots=True)
class Sizes:
    """What an image weighs.

    Attributes:
        components: their weights, by name.
        packed: the bytes of all layers as a registry holds them.
    """

    components: dict[str, Weight]
    packed: int

    @property
    def unpacked(self) -> int:
        """The bytes of all files."""
        return sum(weight.unpacked for weight in self.components.values())


def measure(image: str, base: str) -> Sizes:
    """Weigh an image.

    Args:
        image: its name; podman has it.
        base: the name of the image that it begins with.

    Raises:
        subprocess.CalledProcessError: podman does not have them.
    """
    components: dict[str, Weight] = {}
    from_base = len(_layers_of(base))
    with TemporaryDirectory(prefix="ember-size-") as folder:
        subprocess.run(
            ["podman", "push", "--quiet", "--compression-format=zstd", image, f"oci:{folder}"],
            check=True,
        )
        layers = _layers(Path(folder))
        for number, (path, _) in enumerate(layers):
            for name, data in _files(path):
                component = _BASE if number < from_base else _component(name)
                components.setdefault(component, Weight()).add(data)
    for weight in components.values():
        weight.close()
    return Sizes(components, sum(size for _, size in layers))


def table(image: str, sizes: Sizes, budget: float | None) -> str:
    """The sizes as a Markdown table, the heaviest component first."""
    rows = [
        (name, _mb(weight.unpacked), _mb(weight.packed))
        for name, weight in sorted(sizes.components.items(), key=lambda item: -item[1].packed)
    ]
    rows.append(("**all layers**", _mb(sizes.unpacked), _mb(sizes.packed)))
    if budget is not None:
        rows.append(("budget", "", f"{budget:.1f}"))
    lines = [(f"`{image}`", "MB unpacked", "MB in zstd"), ("---", "---:", "---:"), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 when an image is over its budget."""
    parser = argparse.ArgumentParser(prog="python -m image.size", description=__doc__)
    parser.add_argument("--name", default="ember", help="the images' name, before the colon")
    parser.add_argument("--base", required=True, help="the image that they begin with")
    parser.add_argument("targets", nargs="+", help="such as cpu")
    options = parser.parse_args(arguments)
    over = []
    for target in options.targets:
        sizes = measure(f"{options.name}:{target}", options.base)
        budget = BUDGETS_MB.get(target)
        print(table(target, sizes, budget), flush=True)
        if budget is not None and sizes.packed > budget * 1e6:
            over.append(f"{target} is {sizes.packed / 1e6 - budget:.1f} MB over its budget")
    print("\n".join(over), file=sys.stderr, end="\n" if over else "")
    return bool(over)


def _layers_of(image: str) -> list[str]:
    done = subprocess.run(
        ["podman", "image", "inspect", image], check=True, capture_output=True, text=True
    )
    return list(json.loads(done.stdout)[0]["RootFS"]["Layers"])


def _layers(folder: Path) -> list[tuple[Path, int]]:
    """The blobs of the one image in an OCI layout, from the base up, with their sizes."""
    blobs = folder / "blobs/sha256"
    index = json.loads((folder / "index.json").read_bytes())
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_bytes())
    return [(blobs / layer["digest"][7:], layer["size"]) for layer in manifest["layers"]]


def _files(layer: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a layer with their paths, as from the image's root."""
    with (
        layer.open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        for member in archive:
            if member.isfile() and (content := archive.extractfile(member)):
                yield member.name.removeprefix("./"), content.read()


def _component(path: str) -> str:
    return next((name for begin, name in _COMPONENTS.items() if path.startswith(begin)), _REST)


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f}"


if __name__ == "__main__":
    sys.exit(main())

"""The bill of materials of an image, as CycloneDX 1.5 in JSON.

`python -m image.sbom FILE` lists the licences that one names.

It names what is really there after trimming: distributions of Python with their licences, the
libraries that their wheels bundle, the models, and the packages of the base where it lists them.
The same image has the same bill: no time and no random number is in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
import tomllib
import uuid
from email.parser import HeaderParser
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DPKG = Path("/var/lib/dpkg/status.d")
_DOCS = Path("/usr/share/doc")
_LONGEST_LICENCE = 100
"""Some projects put the whole text where the name belongs."""


def bill(image: str, version: str, trees: Sequence[Path]) -> str:
    """The document.

    Args:
        image: its name, such as "cpu".
        version: of this project.
        trees: the folders that Python finds modules in.

    Returns:
        JSON text.
    """
    components = [*_interpreter()]
    for tree in trees:
        components += [*_distributions(tree), *_bundled(tree), *_models(tree)]
    components.sort(key=lambda one: (one["type"], one["name"]))
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": f"ember-{image}",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}"
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def listing(document: str) -> str:
    """The licences of all that a document names, as a Markdown table."""
    rows = [("component", "version", "licence"), ("---", "---", "---")]
    for one in json.loads(document)["components"]:
        if one["type"] != "file":
            known = [each.get("expression") or each["license"]["name"] for each in one["licenses"]]
            rows.append((one["name"], one.get("version", ""), ", ".join(known)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _distributions(tree: Path) -> Iterator[dict[str, Any]]:
    for folder in sorted(tree.glob("*.dist-info")):
        found = PathDistribution(folder)
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{found.version}",
            "purl": f"pkg:pypi/{name}@{found.version}",
            "name": name,
            "version": found.version,
            "licenses": _licences(found),
        }


def _licences(found: PathDistribution) -> list[dict[str, Any]]:
    """By the expression of newer metadata, else by what older ones say in words."""
    facts = found.metadata
    if expressions := facts.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    names = [
        line.rpartition(" :: ")[2]
        for line in facts.get_all("Classifier", [])
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    if not names:
        names = [name for name in facts.get_all("License", []) if len(name) < _LONGEST_LICENCE]
    return [{"license": {"name": name}} for name in names]


def _bundled(tree: Path) -> Iterator[dict[str, Any]]:
    """Libraries that auditwheel has put beside a distribution, by the names of their files."""
    for path in sorted(tree.glob("*.libs/*.so*")):
        yield {
            "type": "file",
            "name": path.name,
            "group": path.parent.name.removesuffix(".libs"),
            "hashes": [_sha256(path.read_bytes())],
        }


def _models(tree: Path) -> Iterator[dict[str, Any]]:
    manifest = tree / "function/models/models.toml"
    if manifest.is_file():
        for model in tomllib.loads(manifest.read_text())["model"]:
            yield {
                "type": "machine-learning-model",
                "name": model["family"],
                "hashes": [{"alg": "SHA-256", "content": model["sha256"]}],
                "licenses": [{"expression": model["licence"]}],
            }


def _interpreter() -> Iterator[dict[str, Any]]:
    """Python, and the packages of the base: with versions, or at least by name."""
    version = platform.python_version()
    licences = [{"expression": "PSF-2.0"}]
    yield {"type": "platform", "name": "python", "version": version, "licenses": licences}
    statuses = sorted(path for path in _DPKG.glob("*") if not path.name.endswith(".md5sums"))
    for path in statuses:
        facts = HeaderParser().parsestr(path.read_text())
        name, version = facts["Package"], facts["Version"]
        yield {
            "type": "library",
            "bom-ref": f"pkg:deb/debian/{name}@{version}",
            "purl": f"pkg:deb/debian/{name}@{version}?distro=debian-12",
            "name": name,
            "version": version,
            "licenses": _in_file(name),
        }
    if not statuses:
        for path in sorted(_DOCS.glob("*/copyright")):
            name = path.parent.name
            yield {
                "type": "library",
                "name": name,
                "purl": f"pkg:deb/debian/{name}",
                "licenses": _in_file(name),
            }


def _in_file(package: str) -> list[dict[str, Any]]:
    """Packages of Debian tell their licences in a text only."""
    return [{"license": {"name": f"{_DOCS}/{package}/copyright"}}]


def _sha256(content: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    print(listing(Path(sys.argv[1]).read_text()), end="")

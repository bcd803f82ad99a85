"""`python -m image.layers`: makes a layer of an image out of what was installed and copied.

It runs in the image's own base, so that what is compiled fits the interpreter and the bill of
materials names what the base has. The folders of `/layers` are put into the image as they are:

    stdlib    the interpreter's own modules, compiled
    deps      dependencies that all images of the function share
    runtime   what runs the models
    code      this project, its models, licences and the bill of materials
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path

from image import bytecode, sbom
from image.trim import trim

HOME = Path("opt/ember")
"""Where Python finds everything, below the image's root."""

ABOUT = Path("usr/share/ember")
"""Where licences and the bill of materials are."""


LAYERS = Path("/layers")


def main() -> int:
    """Make one layer."""
    parser = argparse.ArgumentParser(prog="python -m image.layers", description=__doc__)
    parser.add_argument("layer", choices=("stdlib", "deps", "runtime", "code"))
    parser.add_argument("--image", help="the name of the image, for its bill of materials")
    arguments = parser.parse_args()
    root = LAYERS / arguments.layer
    if arguments.layer == "stdlib":
        bytecode.compile_standard_library(root)
    else:
        if arguments.layer != "code":
            trim(root / HOME)
        bytecode.compile_tree(root / HOME, Path("/") / HOME)
    if arguments.layer == "code":
        trees = [layer / HOME for layer in sorted(LAYERS.iterdir())]
        bill = sbom.bill(arguments.image, os.environ["VERSION"], trees)
        (root / ABOUT / "sbom.cdx.json").write_text(bill)
    settle(root)
    return 0


def settle(tree: Path) -> None:
    """Give all files of a tree one time and modes that let everyone read and nobody write."""
    moment = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            runs = path.is_dir() or mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (moment, moment), follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())

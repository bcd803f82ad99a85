"""Compiled Python: an image that cannot write would compile what it imports at every start.

What is compiled is taken without a look at the source, so the time of a file does not count, and
two builds give the same bytes.
"""

from __future__ import annotations

import compileall
import py_compile
import shutil
import sysconfig
from pathlib import Path

NEVER_IMPORTED = frozenset(
    {"ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "tkinter", "turtledemo"}
)
"""Folders of the standard library that no server needs."""


def compile_tree(tree: Path, prefix: Path) -> None:
    """Compile all modules of a tree.

    Args:
        tree: where the modules are.
        prefix: where they will be; tracebacks name it.

    Raises:
        ValueError: one cannot be compiled.
    """
    if not compileall.compile_dir(
        str(tree),
        maxlevels=32,
        stripdir=str(tree),
        prependdir=str(prefix),
        quiet=1,
        force=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    ):
        raise ValueError(f"not everything in {tree} can be compiled")


def compile_standard_library(root: Path) -> None:
    """Compile the interpreter's own modules, which the base does not, into a tree of their own.

    Args:
        root: stands for `/`; only compiled files are put below it.
    """
    library = Path(sysconfig.get_path("stdlib"))
    copy = root / library.relative_to("/")
    shutil.copytree(
        library,
        copy,
        symlinks=True,
        ignore=lambda folder, names: [
            name
            for name in names
            if name in {*NEVER_IMPORTED, "__pycache__"}
            or (not name.endswith(".py") and not (Path(folder) / name).is_dir())
        ],
    )
    compile_tree(copy, library)
    for path in sorted(copy.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix != ".pyc":
            path.unlink()

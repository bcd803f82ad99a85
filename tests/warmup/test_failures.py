"""What of failures is published."""

from __future__ import annotations

import pytest

from warmup.failures import DamagedError, StoreError, UnavailableError, public_reason


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DamagedError("detect: /srv/models/v1/centerface.onnx: there is no such file"),
            "DamagedError: detect: centerface.onnx: there is no such file",
        ),
        (
            StoreError("the store /home/someone/.cache/ember (EMBER_STORE) is full"),
            "StoreError: the store ember (EMBER_STORE) is full",
        ),
        (
            StoreError("lacks: a (file:///srv/a.onnx), b (/srv/b.onnx), '/srv/c'; /d"),
            "StoreError: lacks: a (a.onnx), b (b.onnx), 'c'; d",
        ),
        (
            UnavailableError("m: gs://bucket/models/m.onnx: 9 bytes in 2 s, not 5 bytes/s"),
            "UnavailableError: m: gs://bucket/models/m.onnx: 9 bytes in 2 s, not 5 bytes/s",
        ),
        (OSError(2, "No such file", "/etc/secret"), "FileNotFoundError; see the log"),
        (RuntimeError("a secret of the inside"), "RuntimeError; see the log"),
    ],
)
def test_our_own_words_are_told_without_paths_and_nobody_elses(error, text):
    assert public_reason(error) == text

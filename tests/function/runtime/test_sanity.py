"""A model that gives no numbers, or for its golden input not what it must, is found out."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from function.runtime.sanity import WrongResultError, finite, known
from warmup.failures import ManifestError
from warmup.models.manifest import GoldenEntry

INPUT = np.arange(12, dtype=np.float32).reshape(2, 6)


class Doubling:
    """Gives twice its input, changed as a test wants it."""

    provider = "CPUExecutionProvider"

    def __init__(self, change=lambda output: output):
        self.change = change

    def run(self, batch):
        return [self.change(batch * 2), np.zeros(1, np.float32)]


@pytest.fixture
def golden(tmp_path):
    np.save(tmp_path / "in.npy", INPUT)
    np.save(tmp_path / "out.npy", INPUT * 2)
    return GoldenEntry(tmp_path / "in.npy", tmp_path / "out.npy", 0.999)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_outputs_that_are_no_numbers_are_wrong(value):
    bad = np.zeros((2, 3), np.float32)
    finite("detect", [bad])
    bad[1, 2] = value
    with pytest.raises(WrongResultError, match="detect gives values that are not finite"):
        finite("detect", [np.zeros(3, np.float32), bad])


def test_the_golden_output_is_right_and_so_is_one_of_the_same_direction(golden):
    known("detect", Doubling(), golden)
    known("detect", Doubling(lambda output: output * 1.5), golden)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda output: output[:1], r"expected an output of shape \(2, 6\), got \(1, 6\)"),
        (lambda output: output * np.nan, "not finite"),
        (lambda output: -output, r"to 0.999 \(cosine\) at least, got -1.0000"),
        (lambda output: output[::-1], "at least, got 0."),
        (lambda output: output * 0, "at least, got nan"),
    ],
    ids=["shape", "NaN", "negative", "unlike", "zero"],
)
def test_another_output_is_wrong_and_the_model_is_named(golden, change, reason):
    with pytest.raises(WrongResultError, match=f"^detect/small: golden check: .*{reason}"):
        known("detect/small", Doubling(change), golden)


@pytest.mark.parametrize(
    "content", [b"", b"no array", pickle.dumps([1.0])], ids=["empty", "text", "pickle"]
)
def test_a_file_that_is_no_array_is_named_and_nothing_in_it_is_executed(golden, content):
    golden.output.write_bytes(content)
    with pytest.raises(ManifestError, match=r"out\.npy: is no array of numbers"):
        known("detect", Doubling(), golden)


def test_an_array_of_objects_is_not_loaded(golden):
    np.save(golden.input, np.array([{}]), allow_pickle=True)
    with pytest.raises(ManifestError, match=r"in\.npy: is no array of numbers"):
        known("detect", Doubling(), golden)

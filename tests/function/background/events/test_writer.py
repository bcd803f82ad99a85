"""What is where an output belongs."""

from __future__ import annotations

import pytest

from function.background.events.notice import Notice
from function.background.events.writer import ExistingOutput, existing_output
from warmup.objects.protocol import Facts

NOTICE = Notice("gs", "uploads", "a#b.jpg", "17")


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (None, ExistingOutput.NOTHING),
        (Facts(metadata={}), ExistingOutput.FOREIGN),
        (Facts(metadata={"ember-of": "uploads/other.jpg#17"}), ExistingOutput.FOREIGN),
        (Facts(metadata={"ember-of": "other/a#b.jpg#17"}), ExistingOutput.FOREIGN),
        (Facts(metadata={"ember-of": "uploads/a#b.jpg#17"}), ExistingOutput.OURS),
        (Facts(metadata={"ember-of": "uploads/a#b.jpg#9"}), ExistingOutput.OLDER),
        (Facts(metadata={"ember-of": "uploads/a#b.jpg#18"}), ExistingOutput.NEWER),
        (Facts(metadata={"ember-of": "uploads/a#b.jpg#"}), ExistingOutput.OLDER),
        (Facts(metadata={"ember-of": "uploads/a#b.jpg#v1"}), ExistingOutput.OLDER),
    ],
)
def test_the_mark_says_of_which_upload_an_output_is(facts, found):
    assert existing_output(facts, NOTICE, marked=True) is found


def test_without_marks_any_object_counts_as_the_output():
    assert existing_output(Facts(), NOTICE, marked=False) is ExistingOutput.OURS
    assert existing_output(None, NOTICE, marked=False) is ExistingOutput.NOTHING

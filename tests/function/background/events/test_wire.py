"""From bytes to events to uploads: what real senders send, and what nobody should."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.background.events import notice, wire
from function.background.events.event import CloudEvent
from function.background.events.notice import Notice
from function.problems import Problem

from . import forms

NAME = "in/ä b%20c+d.jpg"
DATA = forms.resource("uploads", NAME, 1732881600000001, metadata={"source": "alice"})
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def read(headers, body):
    """The upload in a request of one event."""
    (event,) = wire.parse(headers.items(), body).events
    return notice.read(event)


@pytest.mark.parametrize("form", forms.ALL)
def test_every_form_tells_of_the_same_upload(form):
    found = read(*forms.ALL[form](DATA))
    assert found.key == f"uploads/{NAME}#1732881600000001"
    if form != "pushed without payload":
        assert (found.media_type, found.metadata) == ("image/jpeg", {"source": "alice"})
    else:
        assert (found.media_type, found.metadata) == (None, None)


@pytest.mark.parametrize("form", forms.ALL)
@pytest.mark.parametrize("spelt", [str.upper, str.lower, str.title])
@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/octet-stream", "JSON"])
def test_neither_spelling_nor_content_type_matters(form, spelt, kind):
    headers, body = forms.ALL[form](DATA)
    headers = {spelt(k): v for k, v in headers.items() if k.lower() != "content-type"}
    if kind is not None:
        headers["content-TYPE"] = kind
    assert read(headers, body).name == NAME


def test_attributes_in_headers_are_decoded_once_and_names_never():
    headers, body = forms.binary(DATA | {"name": "100%25 ä.jpg"}, subject="objects/100%25 ä")
    (event,) = wire.parse(headers.items(), body).events
    assert event.subject == "objects/100%25 ä"
    assert notice.read(event).name == "100%25 ä.jpg"


def test_a_declared_data_content_type_in_binary_mode_is_ignored():
    headers, body = forms.binary(DATA)
    assert read(headers | {"ce-datacontenttype": "text/xml"}, body).name == NAME


def test_data_may_be_text_or_base64_of_json():
    _, body = forms.structured(DATA)
    value = json.loads(body)
    text = value | {"data": json.dumps(DATA)}
    coded = {k: v for k, v in value.items() if k != "data"}
    coded["data_base64"] = base64.b64encode(json.dumps(DATA).encode()).decode()
    for each in (text, coded):
        assert read({}, json.dumps(each).encode()).name == NAME


def test_without_data_source_and_subject_tell_of_the_upload():
    headers, _ = forms.binary(DATA | {"name": "a.jpg"})
    found = read(headers, b"")
    assert (found.bucket, found.name, found.version) == ("uploads", "a.jpg", "")


@pytest.mark.parametrize("spelt", [str.upper, str.lower, str.title])
def test_an_unwrapped_push_has_its_attributes_in_headers(spelt):
    headers, body = forms.unwrapped(DATA | {"name": "in/a b%20c.jpg"})
    found = read({spelt(name): value for name, value in headers.items()}, body)
    assert found.key == "uploads/in/a b%20c.jpg#1732881600000001"
    assert found.metadata == {"source": "alice"}


@pytest.mark.parametrize("generation", [17, "17"])
def test_numbers_may_be_text(generation):
    data = DATA | {"generation": generation, "size": 5}
    assert read(*forms.structured(data)).version == "17"


@pytest.mark.parametrize("missing", ["id", "source", "type"])
def test_a_missing_attribute_is_named(missing):
    headers, body = forms.binary(DATA)
    del headers[f"ce-{missing}"]
    value = json.loads(forms.structured(DATA)[1])
    del value[missing]
    for request in ((headers, body), ({}, json.dumps(value).encode())):
        with pytest.raises(Problem) as raised:
            wire.parse(request[0].items(), request[1])
        assert raised.value.code == "bad_event"
        assert raised.value.extra["attribute"] == missing


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[", b"null", b"17", b'"x"', b"[1]", b"\xff", b"[" * 100_000, b'{"message": 1}',
     b'{"message": {}}', b'{"id":1,"source":"s","type":"t"}',
     b'{"specversion":"2.0","id":"1","source":"s","type":"t"}',
     b'{"id":"1","source":"s","type":"t","data_base64":"!"}'],
)  # fmt: skip
def test_what_is_no_event_is_refused(body):
    with pytest.raises(Problem) as raised:
        wire.parse([], body)
    assert raised.value.code == "bad_event"


@given(st.dictionaries(st.text(), st.text()), st.binary())
def test_nothing_else_is_raised_whatever_comes(headers, body):
    try:
        delivery = wire.parse(headers.items(), body)
    except Problem as problem:
        delivery, code = wire.Delivery(()), problem.code
    else:
        code = "bad_event"
    assert code == "bad_event"
    for event in delivery.events:
        assert noticed(event)


def noticed(event):
    """Whether an event tells of an upload, tells why it tells of none, or is refused."""
    try:
        return isinstance(notice.read(event), (str, Notice))
    except Problem as problem:
        return problem.code == "bad_event"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(
            ["s3", "bucket", "object", "name", "key", "message", "attributes", "data", "Records",
             "detail", "generation", "metadata", "eventType", "bucketId", "objectId"]
        ), inner,
    ),
)  # fmt: skip


@given(JSON, st.sampled_from([forms.FINALIZED, wire.PUSHED, wire.NOTIFIED, "x"]))
def test_no_data_breaks_the_reading(data, kind):
    value = {"id": "1", "source": "s", "type": kind, "data": data}
    for event in wire.parse([], json.dumps(value).encode()).events:
        assert noticed(event)


@given(JSON)
def test_no_body_breaks_the_reading(value):
    """Whatever JSON it is, in place of whatever attribute."""
    whole = {"id": "1", "source": "s", "type": "t"}
    for each in (value, whole | {"specversion": value}, whole | {"subject": value, "type": value}):
        with contextlib.suppress(Problem):
            assert all(map(noticed, wire.parse([], json.dumps(each).encode()).events))


@pytest.mark.parametrize(
    "data",
    [b"[" * 10**5, b'{"a":' * 10**5, b"\xff\xfe", b"NaN", b"1e999", b'"\\ud800"', b"9" * 5000,
     b"[" * 700 + b"]" * 700],
    ids=["lists", "objects", "bytes", "nan", "infinite", "half", "digits", "deep"],
)  # fmt: skip
def test_data_that_nobody_can_read_is_refused_wherever_it_stands(data):
    coded = base64.b64encode(data).decode()
    attributes = {"id": "1", "source": "s", "type": forms.FINALIZED}
    for request in (
        ({f"ce-{name}": value for name, value in attributes.items()}, data),
        ({}, json.dumps(attributes | {"data_base64": coded}).encode()),
        ({}, json.dumps({"message": {"messageId": "1", "data": coded}}).encode()),
    ):
        (event,) = wire.parse(request[0].items(), request[1]).events
        with pytest.raises(Problem) as raised:
            notice.read(event)
        assert raised.value.code == "bad_event"
        (again,) = wire.parse([], json.dumps(event.structured()).encode()).events
        assert again.data == event.data


@pytest.mark.parametrize(
    "request_",
    [
        forms.structured(DATA | {"name": ""}, subject="x"),
        forms.structured(DATA | {"name": 5}, subject="elsewhere/a"),
        forms.structured({"bucket": "", "name": "a", "generation": "1"}, source="s"),
        forms.pushed(DATA | {"bucket": ""}, bucketId=""),
        forms.unwrapped(DATA | {"name": ""}),
        forms.minio(forms.record("", "a")),
        forms.minio(forms.record("photos", "")),
    ],
)
def test_what_tells_of_an_upload_and_not_of_which_is_refused(request_):
    with pytest.raises(Problem) as raised:
        read(*request_)
    assert raised.value.code == "bad_event"


class TestHeaders:
    """The HTTP binding of CloudEvents, 3.1.3.2: quotes, then percent-encoding, of UTF-8."""

    @pytest.mark.parametrize(
        ("sent", "meant"),
        [
            ("in/a.jpg", "in/a.jpg"),
            ('"in/a.jpg"', "in/a.jpg"),
            ('"say \\"a\\" \\\\ b"', 'say "a" \\ b'),
            ('"Euro%20%E2%82%AC"', "Euro €"),
            ("Euro%20%e2%82%ac%20%F0%9F%98%80", "Euro € 😀"),
            ("100%25", "100%"),
            ("%2525", "%25"),
            ('""', ""),
            ("  spaced\t", "spaced"),
            ("caf\udcc3\udca9", "café"),  # raw UTF-8, as aiohttp hands it on
        ],
    )
    def test_every_attribute_in_a_header_is_decoded(self, sent, meant):
        headers, body = forms.binary(DATA)
        headers |= {"ce-id": f'"{sent}"' if meant == "" else sent, "ce-subject": sent}
        if meant == "":
            headers["ce-id"] = "1"
        (event,) = wire.parse(headers.items(), body).events
        assert event.subject == meant
        assert event.id == (meant or "1")

    @pytest.mark.parametrize(
        "sent", ['"open', '"', '"a\\"', '"a"b"', "100%", "%G1", "%E2%82", "%FF", "a\udcff", '"%"']
    )
    @pytest.mark.parametrize("name", ["ce-id", "ce-subject", "ce-whatever"])
    def test_a_header_that_is_not_well_encoded_is_refused(self, sent, name):
        headers, body = forms.binary(DATA)
        with pytest.raises(Problem) as raised:
            wire.parse((headers | {name: sent}).items(), body)
        assert raised.value.extra["attribute"] == name[3:]

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_the_headers_of_our_own_events_are_read_back(self, text):
        headers, body = event_of(text).binary()
        (again,) = wire.parse(headers.items(), body).events
        assert again.subject == text

    def test_the_headers_of_an_unwrapped_push_are_utf_8(self):
        headers, body = forms.unwrapped(DATA)
        for name in ("objectId", "x-goog-pubsub-message-id"):
            with pytest.raises(Problem):
                wire.parse((headers | {name: "a\udcff"}).items(), body)

    def test_a_tracestate_that_cannot_be_passed_on_is_dropped(self):
        headers, body = forms.binary(DATA)
        for state in ("a=\udcff", "a=1\r\nX: y", "a=" + "b" * 513):
            trace = {"traceparent": TRACEPARENT, "tracestate": state}
            (event,) = wire.parse((headers | trace).items(), body).events
            assert event.trace.headers == {"traceparent": TRACEPARENT}


def event_of(subject):
    return CloudEvent("1", "s", "t", {"a": 1}, subject)


@pytest.mark.parametrize("where", ["ce-traceparent", "traceparent"])
def test_the_trace_of_a_request_is_that_of_its_event(where):
    headers, body = forms.binary(DATA)
    (event,) = wire.parse((headers | {where: TRACEPARENT}).items(), body).events
    assert event.trace.parent == TRACEPARENT
    assert event.attributes()["traceparent"] == TRACEPARENT


@pytest.mark.parametrize(
    "bad", ["", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "ff" + TRACEPARENT[2:], "x"]
)
def test_a_broken_trace_is_none(bad):
    headers, body = forms.binary(DATA)
    (event,) = wire.parse((headers | {"traceparent": bad}).items(), body).events
    assert event.trace is None


def test_a_batch_has_all_its_events():
    bodies = [forms.structured(DATA, id=f"e-{n}")[1] for n in range(3)]
    delivery = wire.parse(
        *[part if isinstance(part, bytes) else part.items() for part in forms.batch(*bodies)]
    )
    assert delivery.batch
    assert [event.id for event in delivery.events] == ["e-0", "e-1", "e-2"]


def test_a_batch_has_an_end():
    body = json.dumps([json.loads(forms.structured(DATA)[1])] * 1001).encode()
    with pytest.raises(Problem):
        wire.parse([], body)


class TestS3:
    def test_each_record_of_s3_is_an_event_and_its_key_is_decoded(self):
        headers, body = forms.minio(
            forms.record("photos", "in/a b+ü.jpg", userMetadata={"X-Amz-Meta-Source": "alice"}),
            forms.record("photos", "in/c.jpg", contentType="image/png"),
        )
        first, second = map(notice.read, wire.parse(headers.items(), body).events)
        assert (first.store, first.name, first.version) == ("s3", "in/a b+ü.jpg", "v1")
        assert first.metadata == {"source": "alice"}
        assert (second.name, second.media_type) == ("in/c.jpg", "image/png")

    def test_records_of_s3_have_ids_of_their_own(self):
        _, body = forms.minio(forms.record("p", "a"), forms.record("p", "b"))
        ids = [event.id for event in wire.parse([], body).events]
        assert len(set(ids)) == 2
        assert ids == [event.id for event in wire.parse([], body).events]

    def test_the_id_of_a_record_without_a_request_id_does_not_depend_on_its_place(self):
        def bare(name, version):
            made = forms.record("p", name, version)
            del made["responseElements"]
            return made

        def ids(*records):
            return [event.id for event in wire.parse([], forms.minio(*records)[1]).events]

        old, new, other = bare("a", "v1"), bare("a", "v2"), bare("b", "v1")
        assert len({*ids(old), *ids(new), *ids(other)}) == 3
        assert ids(old, other) == ids(old) + ids(other)
        assert ids(other, old) == ids(other) + ids(old)
        assert ids(old | {"responseElements": None}) != ids(new | {"responseElements": {}})

    def test_a_record_of_s3_may_be_in_a_cloud_event(self):
        value = {"id": "1", "source": "minio", "type": "com.amazonaws.s3.objectcreated.put",
                 "specversion": "1.0", "data": forms.record("photos", "a b.jpg")}  # fmt: skip
        assert read({}, json.dumps(value).encode()).name == "a b.jpg"

    def test_keys_from_eventbridge_are_not_encoded(self):
        data = {"bucket": {"name": "photos"}, "object": {"key": "a+b%20.jpg", "etag": "e"}}
        value = {"id": "1", "source": "aws.s3", "type": "Object Created", "data": data}
        found = read({}, json.dumps(value).encode())
        assert (found.name, found.version) == ("a+b%20.jpg", "e")

    def test_deletions_in_s3_are_no_uploads(self):
        _, body = forms.minio(forms.record("p", "a", event="s3:ObjectRemoved:Delete"))
        assert isinstance(read({}, body), str)


@pytest.mark.parametrize(
    "request_",
    [
        forms.structured(DATA, type="google.cloud.storage.object.v1.deleted"),
        forms.structured(DATA, type="google.cloud.storage.object.v1.archived"),
        forms.structured(DATA, type="com.example.other"),
        forms.structured(DATA, type="dev.ember.swap.succeeded.v1"),
        forms.pushed(DATA, eventType="OBJECT_DELETE"),
        forms.pushed(DATA, eventType="OBJECT_METADATA_UPDATE"),
        forms.structured(DATA | {"name": "folder/"}),
    ],
)
def test_what_tells_of_no_upload_says_why(request_):
    assert isinstance(read(*request_), str)

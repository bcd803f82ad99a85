"""Which fields a request has, and how multipart and JSON bodies are read into them.

One table per call, read by the parser and by the OpenAPI document.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function.faces.select import NAME
from function.http import jsonbody, multipart
from function.http.jsonbody import LongString
from function.problems import Problem
from function.requests import Upload
from function.storage.storage import problem
from function.trust.gate.consent import is_text
from warmup.objects import data_uri
from warmup.objects.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MULTIPART = "multipart/form-data"
JSON = "application/json"

_NAME = re.compile(NAME)
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_MAX_URI = 16 * 1024  # characters, where it does not have the photo inside


@dataclass(frozen=True, slots=True)
class Photos:
    """A field of one or more image files; in JSON, a URI or a list of them.

    Attributes:
        about: what the field is for.
        most: how many it takes.
        required: whether it takes at least one.
        each: where each file shows somebody who has a name: how many files one name takes. In JSON
            it is an object from names to URIs then; a file is named as it is called, up to its
            first dot.
        instead: a field with names that may be there in its place.
    """

    about: str
    most: int = 1
    required: bool = False
    each: int | None = None
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A field of text, or of a whole number.

    Attributes:
        about: what the field is for.
        schema: JSON Schema of it: a string, perhaps with an `enum` or a `maxLength`, or an integer
            with `minimum` and `maximum`.
        required: whether it has to be there.
    """

    about: str
    schema: Mapping[str, Any]
    required: bool = False


Table = dict[str, Photos | Value]


@dataclass(frozen=True, slots=True)
class SentForm:
    """The fields of one request as they were sent: all is of the right kind and number.

    Attributes:
        photos: files, or URIs of them; those with a name as `field.name`.
        values: the others.
    """

    photos: dict[str, tuple[Upload | str, ...]]
    values: dict[str, Any]

    @property
    def size(self) -> int:
        """How many bytes `digest` is about."""
        every = [each for several in self.photos.values() for each in several]
        return sum(len(each) if isinstance(each, str) else len(each.data) for each in every)

    def digest(self) -> str:
        """What tells it from another request, however both were encoded."""
        whole = hashlib.sha256()
        for name, several in sorted(self.photos.items()):
            for each in several:
                data = each.encode(errors="surrogatepass") if isinstance(each, str) else each.data
                kind = "uri" if isinstance(each, str) else "file"
                part = hashlib.sha256(data).hexdigest()
                whole.update(f"{name} {kind} {part}\n".encode())
        whole.update(json.dumps(self.values, sort_keys=True).encode())
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of one request, and what was behind its URIs."""

    photos: dict[str, tuple[Upload, ...]]
    values: dict[str, Any]

    def people(self, one: str, several: str) -> tuple[Upload, ...]:
        """The photos of two fields: one without, one with names."""
        return self.photos.get(one, ()) + tuple(
            replace(photo, name=name)
            for name in names_of(self.photos, several)
            for photo in self.photos[f"{several}.{name}"]
        )


def from_multipart(data: bytes | bytearray, boundary: str, table: Table) -> SentForm:
    """The fields of a multipart body.

    Raises:
        Problem: it is none, or a field is not as the table says.
    """
    photos: dict[str, tuple[Upload | str, ...]] = {}
    values: dict[str, Any] = {}
    for part in multipart.parse(data, boundary):
        name = part.name
        spec = _spec(table, name)
        if isinstance(spec, Photos):
            if part.file_name == "" and not part.data:
                continue  # a file input of a page that nobody filled in
            if part.file_name is None and (part.media_type or "text/plain").startswith("text/"):
                raise Problem("bad_value", f"`{name}` has to be a file, not text.", field=name)
            key = name if spec.each is None else _named(name, (part.file_name or "").split(".")[0])
            upload = checked_upload(Upload(part.data, key, part.media_type))
            photos[key] = (*photos.get(key, ()), upload)
            _check_counts(name, spec, photos)
        else:
            if part.file_name is not None:
                raise Problem("bad_value", f"`{name}` has to be text, not a file.", field=name)
            if name in values:
                raise Problem("bad_value", f"`{name}` is given more than once.", field=name)
            text = _text(part.data, name)
            is_number = spec.schema["type"] == "integer" and _WHOLE.fullmatch(text)
            values[name] = checked_value(int(text) if is_number else text, spec, name)
    return SentForm(photos, values)


def from_json(data: bytes | bytearray, table: Table) -> SentForm:
    """The fields of a JSON body.

    Raises:
        Problem: it is none, or a field is not as the table says.
    """
    return from_members(jsonbody.parse(data), table)


def from_members(members: Mapping[str, Any], table: Table) -> SentForm:
    """The fields of the members of a JSON object, in which files may be bytes besides URIs.

    Raises:
        Problem: a field is not as the table says.
    """
    photos: dict[str, tuple[Upload | str, ...]] = {}
    values: dict[str, Any] = {}
    for name, value in members.items():
        spec = _spec(table, name)
        if isinstance(spec, Photos) and spec.each is not None:
            if not isinstance(value, dict) or not value:
                raise Problem(
                    "bad_value",
                    f"`{name}` has to be an object: names, each with a URI.",
                    field=name,
                )
            _check_count(name, spec.most, len(value))
            for each, uris in value.items():
                key = _named(name, each)
                photos[key] = _photos(uris, key, spec.each)
            _check_counts(name, spec, photos)
        elif isinstance(spec, Photos):
            photos[name] = _photos(value, name, spec.most)
        else:
            values[name] = checked_value(_short(value, spec, name), spec, name)
    return SentForm(photos, values)


def names_of(photos: Iterable[str], field: str) -> list[str]:
    """The names of those whom the photos of a field show, from the keys of a form."""
    return [key.removeprefix(f"{field}.") for key in photos if key.startswith(f"{field}.")]


def _named(field: str, name: str) -> str:
    """The key of somebody's photos."""
    if not _NAME.fullmatch(name):
        raise Problem(
            "bad_value",
            f"A name in `{field}` has 1 to 32 of A–Z, a–z, 0–9, _ and -; of a file's name that is"
            " what comes before its first dot.",
            field=field,
        )
    return f"{field}.{name}"


def _photos(value: object, name: str, most: int) -> tuple[Upload | str, ...]:
    """The photos that a URI, or a list of them, stands for."""
    uris: list[Any] = value if isinstance(value, list) and most > 1 else [value]
    if not uris or not all(isinstance(uri, str | LongString | bytes) for uri in uris):
        several = " or a list of them" if most > 1 else ""
        raise Problem("bad_value", f"`{name}` has to be a URI{several}.", field=name)
    _check_count(name, most, len(uris))
    return tuple(_photo(uri, name) for uri in uris)


def _photo(uri: str | LongString | bytes, name: str) -> Upload | str:
    """A photo whose URI is long and has it inside, or which is there itself; any other URI."""
    if isinstance(uri, str):
        return uri
    if isinstance(uri, bytes):
        return checked_upload(Upload(uri, name))
    if bytes(uri.raw[:5]).lower() == b"data:":
        coded = b"base64" in bytes(uri.raw[: jsonbody.LONG]).partition(b",")[0].lower()
        try:
            found = data_uri.decoded(
                uri.plain
                if coded
                else _text_of(uri, name, data_uri.MAX_ESCAPED).encode(errors="surrogatepass")
            )
        except (Problem, MalformedError) as error:
            wrong = error if isinstance(error, Problem) else problem(error)
            raise Problem(
                wrong.code, f"`{name}`: {wrong.detail}", **{"field": name} | wrong.extra
            ) from error
        return checked_upload(Upload(found.data, name, found.facts.media_type))
    return _text_of(uri, name, _MAX_URI)


def _short(value: object, spec: Value, name: str) -> object:
    """A value with its text, if it is a long string."""
    if not isinstance(value, LongString):
        return value
    return _text_of(value, name, spec.schema.get("maxLength", jsonbody.LONG))


def _text_of(value: LongString, name: str, most: int) -> str:
    try:
        text = value.text(most)
    except ValueError:
        raise Problem("bad_request", "The body is not JSON in UTF-8.") from None
    if text is None:
        raise Problem(
            "bad_value", f"`{name}` is longer than {most} characters.", field=name, limit=most
        )
    return text


def _spec(table: Table, name: str) -> Photos | Value:
    if spec := table.get(name):
        return spec
    name = name[:80]
    near = difflib.get_close_matches(name, table, 1)
    known = ", ".join(f"`{each}`" for each in table)
    raise Problem(
        "unknown_field",
        f"There is no field `{name}`.",
        field=name,
        hint=f"Did you mean `{near[0]}`?" if near else f"The fields are {known}.",
    )


def _check_counts(name: str, spec: Photos, photos: Mapping[str, tuple[Upload | str, ...]]) -> None:
    """See that a field, and of one with names each name, has not too many photos."""
    own = (
        {name: len(photos[name])}
        if spec.each is None
        else {key: len(several) for key, several in photos.items() if key.startswith(f"{name}.")}
    )
    _check_count(name, spec.most, sum(own.values()))
    for key, count in own.items():
        _check_count(key, spec.each or spec.most, count)


def _check_count(name: str, most: int, count: int) -> None:
    if count > most:
        raise Problem("bad_value", f"`{name}` takes at most {most}.", field=name, limit=most)


def checked_upload(upload: Upload) -> Upload:
    """A file that is not empty.

    Raises:
        Problem: `bad_image`; it is.
    """
    if not upload.data:
        raise Problem("bad_image", f"The file in `{upload.field}` is empty.", image=upload.field)
    return upload


def checked_value(value: object, spec: Value, name: str) -> object:
    """The value, when it is one that the field can have.

    Raises:
        Problem: `bad_value`; it is not.
    """
    schema = spec.schema
    if schema["type"] == "integer":
        least, most = schema["minimum"], schema["maximum"]
        if type(value) is not int or not least <= value <= most:
            raise Problem(
                "bad_value", f"`{name}` is a whole number from {least} to {most}.", field=name
            )
    elif not isinstance(value, str):
        raise Problem("bad_value", f"`{name}` has to be a string.", field=name)
    elif len(value) > (longest := schema.get("maxLength", len(value))):
        raise Problem(
            "bad_value", f"`{name}` is longer than {longest} characters.", field=name, limit=longest
        )
    elif not is_text(value):
        raise Problem("bad_value", f"`{name}` has half of a character (a surrogate).", field=name)
    elif value not in (allowed := schema.get("enum", [value])):
        raise Problem(
            "bad_value", f"`{name}` is one of {', '.join(allowed)}.", field=name, allowed=allowed
        )
    return value


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Problem("bad_value", f"`{name}` is not UTF-8.", field=name) from None

"""A multipart body to its parts (RFC 7578).

The body is in memory, so it is cut at the boundaries by `bytes.find`, at the speed of memory;
aiohttp's reader looks at every chunk in Python. The heads of the parts go through the standard
library's mail parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.parser import HeaderParser
from typing import TYPE_CHECKING

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PARTS = 64
"""More parts than any request of Ember has fields."""
MAX_HEAD_BYTES = 8192
"""The most bytes that the head of one part may have."""


@dataclass(frozen=True, slots=True)
class FormPart:
    """One part.

    Attributes:
        name: of the field.
        data: the content.
        file_name: "" when a browser's file input was left empty, None when the part is no file.
        media_type: of the content, when the part says it.
    """

    name: str
    data: bytes
    file_name: str | None
    media_type: str | None


def parse(body: bytes | bytearray, boundary: str) -> Iterator[FormPart]:
    """Cut a body into its parts.

    Args:
        body: the whole body.
        boundary: the parameter of the body's Content-Type.

    Raises:
        Problem: `bad_request`, saying what is wrong with it.
    """
    if not boundary.isascii() or not 1 <= len(boundary) <= 70:
        raise _broken("the boundary in Content-Type is missing, too long or not ASCII")
    delimiter = b"\r\n--" + boundary.encode()
    if body.startswith(delimiter[2:]):
        at = len(delimiter) - 2
    elif (preamble := body.find(delimiter)) >= 0:
        at = preamble + len(delimiter)
    else:
        raise _broken("the boundary that Content-Type announces is not in it")
    for _ in range(MAX_PARTS + 1):
        if body.startswith(b"--", at):
            return
        line = body.find(b"\r\n", at)
        if line < 0 or body[at:line].strip(b" \t"):
            raise _broken("a boundary is not followed by the end of its line")
        head_end = body.find(b"\r\n\r\n", line, line + MAX_HEAD_BYTES)
        if head_end < 0:
            raise _broken(f"the head of a part does not end within {MAX_HEAD_BYTES} bytes")
        end = body.find(delimiter, head_end + 2)
        if end < 0:
            raise _broken("it ends before its closing boundary")
        yield _part(body[line + 2 : head_end], bytes(memoryview(body)[head_end + 4 : end]))
        at = end + len(delimiter)
    raise _broken(f"it has more than {MAX_PARTS} parts")


def _part(head: bytes | bytearray, data: bytes) -> FormPart:
    try:
        text, whole = head.decode(), True
    except UnicodeDecodeError:  # names of files are in whatever code page, and of no use
        text, whole = head.decode("latin-1"), False
    headers = HeaderParser().parsestr(text)
    disposition = headers.get_params([], "content-disposition")
    parameters = {key.lower(): value for key, value in disposition}
    name, file_name = (_plain(parameters.get(key)) for key in ("name", "filename"))
    if "form-data" not in parameters or name is None:
        raise _broken("a part has no `Content-Disposition: form-data; name=…`")
    if not whole and not name.isascii():
        raise _broken("the name of a field is not UTF-8")
    declared = headers.get_content_type() if "content-type" in headers else None
    return FormPart(name, data, file_name, declared)


def _plain(value: str | tuple[str | None, str | None, str] | None) -> str | None:
    """A parameter's value, whichever way RFC 2231 let it be written."""
    return value[2] if isinstance(value, tuple) else value


def _broken(why: str) -> Problem:
    return Problem("bad_request", f"The multipart body is broken: {why}.")

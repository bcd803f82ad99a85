"""Answers: problems and plain values as HTTP responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.problems import Problem


def problem(problem: Problem, request_id: str) -> web.Response:
    """A problem as RFC 9457 `application/problem+json`; its extra members may replace the hint."""
    members = {
        "type": f"urn:ember:problem:{problem.code}",
        "title": problem.kind.title,
        "status": problem.kind.status,
        "detail": problem.detail,
        "instance": f"urn:ember:request:{request_id}",
        "code": problem.code,
        "request_id": request_id,
        "hint": problem.hint,
        **problem.extra,
    }
    return web.Response(
        status=problem.kind.status,
        body=json.dumps(members).encode(),
        content_type="application/problem+json",
        headers=problem.headers,
    )


def plain(
    members: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A plain value as `application/json`."""
    body = json.dumps(members).encode()
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def size(response: web.StreamResponse) -> int:
    """How many bytes the body of a response has."""
    return response.content_length or 0

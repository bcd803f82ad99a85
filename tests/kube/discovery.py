"""What an API server says of itself, as kubectl asks for it before anything else."""

from __future__ import annotations

from typing import Any

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def discovery(path: str, kinds: dict[str, dict[str, str]]) -> dict[str, Any] | None:
    """The answer at a path; None for one that is about something else.

    Args:
        path: of the address.
        kinds: by group and version, as `apps/v1`, the resources of each kind.
    """
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = [version.split("/") for version in kinds if "/" in version]
        versions = [{"groupVersion": f"{name}/{v}", "version": v} for name, v in groups]
        named = [
            {"name": version["groupVersion"].split("/")[0], "versions": [version]}
            | {"preferredVersion": version}
            for version in versions
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}
    if path == "/openapi/v3":
        addresses = {
            f"{'apis' if '/' in version else 'api'}/{version}": version for version in kinds
        }
        return {"paths": {at: {"serverRelativeURL": f"/openapi/v3/{at}"} for at in addresses}}
    if path.startswith("/openapi/v3/api"):
        version = path.removeprefix("/openapi/v3/").partition("/")[2]
        return _openapi(version, kinds[version])
    version = path.removeprefix("/apis/").removeprefix("/api/")
    if version not in kinds:
        return None
    found = [
        {"name": name, "kind": kind, "namespaced": kind != "Namespace", "verbs": _VERBS}
        | {"singularName": kind.lower()}
        for kind, name in kinds[version].items()
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": found}


def _openapi(version: str, kinds: dict[str, str]) -> dict[str, Any]:
    """Says that the server itself checks fields, so that kubectl leaves it to the server."""
    group, _, number = version.rpartition("/")
    parameters = [{"name": "fieldValidation", "in": "query"}]
    paths = {
        f"/{name}": {
            "patch": {
                "parameters": parameters,
                "responses": {},
                "x-kubernetes-group-version-kind": {
                    "group": group,
                    "version": number,
                    "kind": kind,
                },
            }
        }
        for kind, name in kinds.items()
    }
    return {"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": paths}

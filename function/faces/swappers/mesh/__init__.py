"""The embedded swap: a face warped onto another one, in its light; step after step."""

from function.faces.swappers.mesh.swapper import MeshSwapper

__all__ = ["MeshSwapper"]

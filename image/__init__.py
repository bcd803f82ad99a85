"""How the images are made and measured; nothing of it is in them.

`layers`, `trim`, `bytecode` and `sbom` run inside the build, with nothing but Python; `size` runs
outside, on images that are there.
"""

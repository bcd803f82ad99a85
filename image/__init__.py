"""How the images are made and measured; nothing of it is in them.

`layers` with `trim`, `elf`, `bytecode` and `sbom` run inside the build and need nothing but Python;
`size` runs outside, on images that are there.
"""

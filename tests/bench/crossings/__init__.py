"""`make bench-bytes`: what a swap copies to a GPU and back, and the shapes that a replica has.

A whole swap of the sample photos runs with plans as on a GPU, one for each model. The driver is the
stand-in of the tests, which logs each copy; it computes nothing, so what a plan gives is then
computed on the CPU. Weights are random: bytes depend on shapes alone.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from function.faces import families, geometry, models
from function.faces.pipeline import Pipeline
from function.faces.swappers import crop_masks
from function.faces.swappers.paste import paste
from function.images.decode import decode
from function.process.wiring.service import embedded
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.plan import PlanEngine
from function.runtime.gpu.device import CudaMemory
from function.service.service import sample
from function.telemetry.timings import Timings
from function.weights import cutout
from tests import neural
from tests.function.runtime.backends.host import OnnxPlan
from tests.gpu.standin import control
from warmup.models.manifest import read

CUT = {"swap": 384, "enhance": 768}
"""Sides of cutouts, where they are cut on the device."""
SET = {
    "detect": "centerface",
    "landmarks": "face_mesh_468",
    "identity": "arcface",
    "swap": "inswapper_128",
    "occlusion": "xseg",
    "enhance": "gfpgan_512",
}
LEFT_OUT = ("occlusion", "enhance")
"""Roles that a set need not have."""


class Still(OnnxPlan):
    """A plan on the stand-in: it has all shapes, and computes nothing."""

    def enqueue(self, size, addresses, stream):
        pass

    def keep(self):
        pass

    def close(self):
        pass


class Copying:
    """An engine that copies what a plan copies, and gives what the CPU computes."""

    provider = "TensorRT"

    def __init__(self, model, found):
        family, ports = families.family_of(model), families.ports(model)
        self._items = family.items
        self._computing = OnnxEngine(model.path, ports=ports)
        self.items = self._computing.items
        sizes = [self.items] if self.items else families.buckets(model)
        memory = CudaMemory(0)
        plan = Still(model.path, sizes, memory, {})
        names = family.inputs or [plan.inputs[0].name]
        plan.items.update({n: (None, *i) for n, i in zip(names, family.items, strict=True)})
        self._plan, self._found = PlanEngine(plan, memory, ports), found

    def run(self, *inputs):
        assert tuple(each.shape[1:] for each in inputs) == self._items  # no other shape comes
        before = len(control.log())
        self._plan.run(*inputs)
        self._found["runs"] += 1
        for line in control.log()[before:]:
            way, *size = line.split()
            if way in ("up", "down"):
                self._found[way] += int(size[0])
        return self._computing.run(*inputs)


def manifest(folder, roles, cut):
    """The models of a set; those of `cut` take cutouts."""
    found = {model.role: model for model in read(embedded())}
    for role in roles:
        family = SET[role]
        if role not in found or found[role].family != family:
            dynamic = True if role == "swap" else None
            path = neural.make(folder / f"{role}.onnx", family, dynamic=dynamic)
            options = {}
            if role in cut:
                source, path = path, folder / f"{role}.cutout.onnx"
                options = {"cutout": cutout.make(source, path, role, family, CUT[role])}
            like = found["detect"]
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            file = replace(like.file, path=path, sha256=digest)
            found[role] = replace(like, role=role, family=family, file=file, options=options)
    return [found[role] for role in roles]


def counted(roles, cut):
    """The bytes that one swap copies: up, down and runs, by role."""
    with tempfile.TemporaryDirectory() as folder:
        listed = manifest(Path(folder), roles, cut)
        found = {role: {"runs": 0, "up": 0, "down": 0} for role in roles}
        engines = {each.role: Copying(each, found[each.role]) for each in listed}
        made = models.build(listed, engines)
        pipeline, timings = Pipeline(made, made.swapper()), Timings()
        for each in found.values():  # a plan takes its constants along, once
            each.update(runs=0, up=0, down=0)
        source, _ = pipeline.portrait(decode(sample("collins"), name="source"), timings)
        target = decode(sample("hopper"), name="target")
        faces = pipeline.find(target, timings, identify=True)
        canvas, warnings = pipeline.swap(target, faces, {"": source}, timings)
        pipeline.judge(canvas, faces, warnings, {"": source}, timings)
        assert not control.wrong()
        return found


def shapes(roles, cut):
    """The shapes that a replica's engines get, by role: one for each batch size, and no other."""
    with tempfile.TemporaryDirectory() as folder:
        return {each.role: families.shapes(each) for each in manifest(Path(folder), roles, cut)}


class Idle:
    """An engine that takes no time."""

    def run(self, pixels, *more):
        return [pixels]


def times():
    """Milliseconds of CPU that a face takes: around the engine, and with it on the CPU."""
    size, side, role = 256, 300, "swap"
    there, scale = (size, size), size / side
    place = np.array([[scale, 0, size / 2 - 700 * scale], [0, scale, size / 2 - 700 * scale]])
    canvas = np.random.default_rng(0).integers(0, 256, (1400, 1400, 3), np.uint8)
    mask, source = crop_masks.box(size), np.ones(512, np.float32)

    def by_crops(model):
        crop = geometry.crop(canvas, place, there, cv2.BORDER_REPLICATE)
        paste(canvas, model.make([crop], [source])[0], mask, place, gray=False)

    def by_cutouts(model):
        model.cutouts.change(canvas, [place], [mask], [source])

    found = {"around the model, ms": [], "all of it on the CPU, ms": []}
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        for cut, way in (([], by_crops), ([role], by_cutouts)):
            (listed,) = manifest(Path(folder), [role], cut)
            real = OnnxEngine(listed.path, ports=families.ports(listed))
            for rows, engine in zip(found.values(), (Idle(), real), strict=True):
                model = families.family_of(listed).stage(engine, listed)
                rows.append(min(_once(way, model) for _ in range(20)) * 1e3)
    return found


def _once(way, model):
    began = time.process_time()
    way(model)
    return time.process_time() - began

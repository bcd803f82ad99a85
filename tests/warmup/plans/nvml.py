"""NVIDIA's management library for GPUs that are not here: a module in place of `pynvml`.

It stands in at the boundary of the library, as a machine without a GPU has none; what it says is
what the library's documentation says.
"""

# ruff: noqa: N802 (the names are the library's)

from __future__ import annotations

from types import SimpleNamespace


class NVMLError(Exception):
    """Whatever the library refuses."""


class NVMLLibraryMismatchError(Exception):
    """What is asked is not in the driver's library, which is older; none of the others."""


class Card:
    """A GPU; with slices, one that is cut."""

    def __init__(self, number, *, slices=(), sm=(9, 0), name="NVIDIA H100", free=60, cuttable=True):
        self.uuid, self.name, self.sm = f"GPU-{number}", name, sm
        self.slices, self.cuttable = [], cuttable
        self.free, self.total, self.processes = free * 10**9, 80 * 10**9, []
        for part in slices:
            one = Card(number, sm=sm, name=f"{name} MIG 1g.10gb", free=9)
            one.uuid, one.whole, one.total = f"MIG-{number}-{part}", self, 10 * 10**9
            self.slices.append(one)


class Nvml:
    """The module."""

    NVMLError = NVMLError
    NVMLLibraryMismatchError = NVMLLibraryMismatchError
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *cards, driver="580.65.06", cuda=13010, broken=False, old=False):
        self.cards, self.driver, self.cuda, self.broken = cards, driver, cuda, broken
        self.old = old

    def nvmlInit(self):
        if self.broken:
            raise NVMLError("Driver Not Loaded")

    def nvmlSystemGetDriverVersion(self):
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self):
        return self.cuda

    def nvmlDeviceGetCount(self):
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index):
        if index >= len(self.cards):
            raise NVMLError("Invalid Argument")
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        for card in self.cards:
            for each in (card, *card.slices):
                if each.uuid == uuid:
                    return each
        raise NVMLError("Not Found")

    def nvmlDeviceGetUUID(self, card):
        return card.uuid

    def nvmlDeviceGetName(self, card):
        return card.name.encode()  # as some versions do

    def nvmlDeviceGetCudaComputeCapability(self, card):
        if card.uuid.startswith("MIG"):
            raise NVMLError("Not Supported")
        return card.sm

    def nvmlDeviceGetMigMode(self, card):
        if not card.cuttable:
            raise NVMLError("Not Supported")
        return bool(card.slices), bool(card.slices)

    def nvmlDeviceGetMaxMigDeviceCount(self, card):
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card, index):
        if index >= len(card.slices):
            raise NVMLError("Not Found")
        return card.slices[index]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, card):
        return card.whole

    def nvmlDeviceGetMemoryInfo(self, card):
        return SimpleNamespace(free=card.free, total=card.total)

    def nvmlDeviceGetUtilizationRates(self, card):
        if card.uuid.startswith("MIG"):
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=40)

    def nvmlDeviceGetTemperature(self, card, kind):
        return 61

    def nvmlDeviceGetComputeRunningProcesses(self, card):
        if self.old:
            raise NVMLLibraryMismatchError("Unversioned function called")
        return card.processes


def process(pid, used):
    return SimpleNamespace(pid=pid, usedGpuMemory=used)

"""Under which licence the published weights of each family are, as their publishers label them.

A hint for who imports them, not legal advice: files of one family may come from somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass

from warmup.models.licence import permissive


@dataclass(frozen=True, slots=True)
class Licence:
    """What a publisher allows.

    Attributes:
        expression: SPDX; `LicenseRef-` for what SPDX does not list.
        vendor: who published the weights.
        note: what else to know.
    """

    expression: str
    vendor: str
    note: str = ""

    @property
    def free(self) -> bool:
        """Whether it asks nothing but to keep the notices."""
        return permissive(self.expression)

    def __str__(self) -> str:
        """For people."""
        text = f"{self.expression}, {self.vendor}"
        return f"{text}: {self.note}" if self.note else text


_RESEARCH = Licence("LicenseRef-InsightFace-NonCommercial", "InsightFace", "research only")
_UNKNOWN = "LicenseRef-Unknown"

LICENCES = {
    "centerface": Licence("MIT", "Star-Clouds"),
    "scrfd": _RESEARCH,
    "retinaface": _RESEARCH,
    "yunet": Licence("MIT", "OpenCV"),
    "face_mesh_468": Licence("Apache-2.0", "Google"),
    "insightface_2d106": _RESEARCH,
    "fan_68": Licence("MIT", "breadbread1984"),
    "face_identity_128": Licence("MIT AND CC0-1.0", "dlib, face-api"),
    "arcface": _RESEARCH,
    "inswapper_128": Licence(
        "LicenseRef-InsightFace-NonCommercial", "InsightFace", "research only, else ask for one"
    ),
    "hyperswap_256": Licence("LicenseRef-ResearchRAIL", "FaceFusion", "research only"),
    "simswap_256": Licence("CC-BY-NC-4.0", "neuralchen"),
    "simswap_512": Licence("CC-BY-NC-4.0", "neuralchen"),
    "ghost_256": Licence("Apache-2.0", "ai-forever"),
    "hififace_256": Licence(_UNKNOWN, "GuijiAI", "ask"),
    "uniface_256": Licence(_UNKNOWN, "xc-csc101", "ask"),
    "blendswap_256": Licence("LicenseRef-NonCommercial", "mapooon"),
    "crossface": Licence(_UNKNOWN, "FaceFusion", "its files name none: ask"),
    "gfpgan_512": Licence("Apache-2.0", "TencentARC"),
    "codeformer_512": Licence("LicenseRef-S-Lab-1.0", "sczhou", "not commercial"),
    "restoreformer_512": Licence("Apache-2.0", "wzhouxiff"),
    "gpen_256": (_GPEN := Licence("LicenseRef-NonCommercial", "yangxy")),
    "gpen_512": _GPEN,
    "gpen_1024": _GPEN,
    "gpen_2048": _GPEN,
    "xseg": Licence("GPL-3.0-only", "DeepFaceLab"),
    "bisenet": Licence("MIT", "yakhyo"),
    "open_nsfw": Licence("BSD-2-Clause", "Yahoo"),
    "insightface_genderage": _RESEARCH,
    "fairface_9": Licence(_UNKNOWN, "several", "FairFace's own pictures are CC-BY-4.0: ask"),
}
"""By family."""

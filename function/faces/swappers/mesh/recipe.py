"""Every number of the mesh swap's finish in one value, each with its reason.

Lengths are in face widths, so that a face of any size is treated alike. What was measured on pairs
of photos stands in docs/quality.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeshRecipe:
    """How a warped face is finished.

    Attributes:
        cells: of the long side of the grid: finer ones cost time and gain no likeness.
        reach: how far outside of the outline something may change: frames stick out of a face.
        ring: how far the mesh is continued outwards, so that there is texture at the outline.
        finer: sources so much larger than the target are drawn at twice its size, and averaged:
            interpolating them makes eyes soft or jagged.
        shadow: source within this of its own hair or hat is not used above the brows.
        brow: the target's brows are healed with so much around them …
        covered: … where the new face covers less than this share of them.
        hair: what is darker than this share of the skin is hair, which is not healed.
        smooth: sigma of what is healed, and of the light that calm and blend compare.
        calm_reach: around spectacled eyes, colour is calmed within this.
        calm_sigma: of the colour that is calmed; finer than that is skin texture.
        calm_rims, calm_skin: share of the source's own chroma that stays there, and elsewhere at
            least: on skin it stays as far as the target's own strays as much.
        calm_light: levels of L* that glare may differ from the target's light around these eyes.
        detail: sigma that parts detail from form.
        detail_luma, detail_chroma: limits of the ratio by which detail is matched.
        highlight: deviations above which the light of detail is bent towards them.
        crisp, crisp_most, crisp_sigma: largest share, limit in levels and sigma of the unsharp mask
            on eyes and brows that are softer than the target's.
        band: sigma of the second, softer mask, by which low frequencies are blended.
        frame_unlike, frame_darker: difference from skin in Lab, and in its L*, of a frame.
        frame_least: share of the face's width squared that a frame covers at each temple.
        frame_bridge: contrast of the bridge of the nose over that of the cheeks with spectacles on;
            at most 1.9 without, at least 2.5 with them where both temples are dark.
        frame_near: share of the difference between frame and skin that parts of a frame differ.
        frame_hair: more than this (of the width squared) outside of the outline is hair.
        frame_reach: how far out of the outline a frame is looked for.
        frame_grow: what is removed is grown by this: its shadow and its blur.
    """

    cells: int = 128
    reach: float = 0.1
    ring: float = 1.3
    finer: float = 1.1
    shadow: float = 0.012
    brow: float = 0.03
    covered: float = 0.93
    hair: float = 0.72
    smooth: float = 0.012
    calm_reach: float = 0.13
    calm_sigma: float = 0.014
    calm_rims: float = 0.35
    calm_skin: float = 0.75
    calm_light: float = 7.0
    detail: float = 0.06
    detail_luma: tuple[float, float] = (0.92, 1.0)
    detail_chroma: tuple[float, float] = (0.8, 1.0)
    highlight: float = 4.5
    crisp: float = 0.5
    crisp_most: float = 18.0
    crisp_sigma: float = 0.008
    band: float = 0.015
    frame_unlike: float = 26.0
    frame_darker: float = 5.0
    frame_least: float = 0.004
    frame_bridge: float = 2.35
    frame_near: float = 0.5
    frame_hair: float = 0.02
    frame_reach: float = 0.05
    frame_grow: float = 0.02


RECIPE = MeshRecipe()
"""The one that is used."""

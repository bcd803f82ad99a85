"""What the built-in labels say, in each language; a table without the code that draws."""

from __future__ import annotations

# A label has to say that a machine has made or changed what is seen. The EU's AI Act wants
# "artificially generated or manipulated" disclosed (article 50 (4)), its code of practice in plain
# words with "AI" for the only abbreviation. China's GB 45438-2025 wants that it is from 人工智能 or
# AI, and that it is 生成 (generated) or 合成 (composed).
TEXTS = {
    "en": "Face changed with AI",
    "de": "Gesicht mit KI verändert",
    "es": "Rostro modificado con IA",
    "fr": "Visage modifié par IA",
    "it": "Volto modificato con IA",
    "ja": "顔をAIで合成",
    "ko": "AI로 합성한 얼굴",
    "pt": "Rosto modificado com IA",
    "zh": "人脸由AI合成",
}
"""The text of each language."""

FONTS = {"ja": "label-ja.otf", "ko": "label-ko.otf", "zh": "label-zh.otf"}
"""The font of languages whose glyphs are not in `LATIN`, in the folder `fonts`."""
LATIN = "label.ttf"
"""The font of all other languages, with what Latin, Greek and Cyrillic are written with."""

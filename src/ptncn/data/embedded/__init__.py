"""Images that need no download: drawn, or rendered from packages that are installed anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptncn.data.embedded.digits import digits
from ptncn.data.embedded.letters import letters
from ptncn.data.embedded.shapes import shapes
from ptncn.data.images import Images, choose_split

if TYPE_CHECKING:
    from ptncn.data.registry import Dataset

EMBEDDED_IMAGES = {"digits": digits, "letters": letters, "shapes": shapes}


def load(dataset: Dataset, split: str) -> Images:
    """A split of the embedded images of that name."""
    development, test = EMBEDDED_IMAGES[dataset.name]()
    return test if split == "test" else choose_split(development, split)


__all__ = ["EMBEDDED_IMAGES", "digits", "letters", "load", "shapes"]

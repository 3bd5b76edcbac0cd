"""Images that need no download, drawn or rendered from what is installed anyway."""

from ptncn.data.embedded.digits import digits
from ptncn.data.embedded.letters import letters
from ptncn.data.embedded.shapes import shapes

EMBEDDED_IMAGES = {"digits": digits, "letters": letters, "shapes": shapes}

__all__ = ["EMBEDDED_IMAGES", "digits", "letters", "shapes"]

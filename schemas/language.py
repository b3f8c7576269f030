"""The two languages that the desk speaks."""

from typing import Literal

Language = Literal["zh", "en"]

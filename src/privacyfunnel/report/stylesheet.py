"""How pages look: one style sheet for all of them."""

from importlib.resources import files

STYLE: str = files("privacyfunnel.report").joinpath("style.css").read_text(encoding="utf-8")

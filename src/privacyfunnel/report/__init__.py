"""Numbers to pictures. Nothing here computes a promise or a protocol."""

from privacyfunnel.release.files import CROISSANT, OWNERS, PUBLIC

CURVE = ("curve.csv", "curve.svg", "curve.png")  # and the files of a curve
FUNNEL = ("funnel.csv", "funnel.svg", "funnel.png")  # and of the classical funnel

__all__ = ["CROISSANT", "CURVE", "FUNNEL", "OWNERS", "PUBLIC"]

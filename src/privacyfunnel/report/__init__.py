"""Numbers to pictures. Nothing here computes a promise or a protocol."""

from privacyfunnel.release.release_files import CROISSANT, OWNER_REPORT, PUBLIC_REPORT

CURVE = ("curve.csv", "curve.svg", "curve.png")  # and the files of a curve
FUNNEL = ("funnel.csv", "funnel.svg", "funnel.png")  # and of the classical funnel

__all__ = ["CROISSANT", "CURVE", "FUNNEL", "OWNER_REPORT", "PUBLIC_REPORT"]

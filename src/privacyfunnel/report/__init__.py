"""Numbers to pictures. Nothing here computes a promise or a protocol."""

CURVE = ("curve.csv", "curve.svg", "curve.png")  # the files of a curve
FUNNEL = ("funnel.csv", "funnel.svg", "funnel.png")  # and of the classical funnel

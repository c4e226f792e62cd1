"""Numbers to pictures. Nothing here computes a promise or a protocol."""

OWNERS, PUBLIC = "report.html", "public-report.html"  # what the pages are called
CURVE = ("curve.csv", "curve.svg", "curve.png")  # and the files of a curve
FUNNEL = ("funnel.csv", "funnel.svg", "funnel.png")  # and of the classical funnel

"""Spark: a protocol designed from counts that a cluster made, and rows drawn where they lie.

    df ──groupBy().count()──▶ design (driver) ──▶ SealedProtocol ──mapInArrow──▶ rows ──tag──▶ a random order

Spark runs a task again when it failed, or twice when it is slow, and evaluates a frame whenever it is asked for. One
row must be drawn once all the same, for two draws of it say more than one. Hence rows go out in one of two ways:

- *by ids* (`frames.py`): what a row becomes depends on its value, on its id and on a key, and on nothing else, so that
  whoever draws it again draws the same. The frame is handed out as Spark has it, to be evaluated when asked for.
- *once* (`once.py`): every attempt at a task draws with words of its own, and the rows of one attempt at each task, and
  no other, get the final name; there is no frame, only files.
"""

from privacyfunnel.spark.data_frames import Sanitised, apply, design, sanitise

__all__ = ["Sanitised", "apply", "design", "sanitise"]

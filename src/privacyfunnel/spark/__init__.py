"""Spark: a mechanism designed from counts of a cluster, and rows drawn on the executors.

    df ──groupBy().count()──▶ design (driver) ──▶ SealedProtocol ──mapInArrow──▶ rows ──tag──▶ random order

Spark repeats failed tasks, duplicates slow ones, and evaluates a frame on every use. A row must still be drawn once,
because two draws of it leak more than one. So there are two ways to draw:

- with row ids (`frame_draw.py`): the draw depends on the value, the id and a key only, so that a repetition gives the
  same row. The result is a lazy frame.
- without ids (`output_folder.py`): every attempt at a task draws with its own key. The rows of exactly one attempt at
  each task get the final name. The result is a folder of files.
"""

from privacyfunnel.spark.data_frames import apply, design, sanitise

__all__ = ["apply", "design", "sanitise"]

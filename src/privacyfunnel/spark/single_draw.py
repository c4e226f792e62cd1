"""Rows without ids: drawn once, though Spark may run any task again.

Let a job of m tasks write its rows to a hidden folder, and let every attempt at a task draw with a key of its own,
which it has from the operating system. Several attempts at one task may run, at once or one after the other; Spark's
committer lets one of them move its file to where it counts. This is not believed but checked: with each row goes the
number of its task and a random mark of its attempt, and unless every task has exactly one mark, nothing is published.

The files that lie there now are data, no longer draws. Whatever is done with them, putting them into the order of their
tags and writing them under another name, may fail and be done again, and gives the same rows. Only that is renamed.

Rows are drawn where they were read, with no exchange of rows in between: where a lost exchange is made again, a row
could else have moved from a task that is done to one that is not, and be drawn twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import GuaranteeError, TableError

# The first of the two algorithms of Hadoop's committer: a task's files move in one step.
COMMITTER = ("mapreduce.fileoutputcommitter.algorithm.version", "1")


def shuffle_rows(rows: Any) -> Any:
    """Rows in the order of the random tags in their last column, which goes: a uniformly random order.

    A tag decides which partition a row is in, and where in it, and nothing else does. Unlike a whole sort this does not
    look at a sample first, for which all rows would be drawn one more time.
    """
    tag = rows[rows.columns[-1]]
    return rows.repartition(tag).sortWithinPartitions(tag).drop(tag)


def draw_once(drawn: Any, hidden: str, rows: int, *, keep_order: bool) -> Any:
    """The frame evaluated one time into the folder `hidden`, checked, and read from there.

    Its last three columns are the tag of a row, its task and its attempt; they go.
    """
    *_, tag, task, attempt = drawn.columns
    drawn.write.option(*COMMITTER).parquet(hidden)
    written = drawn.sparkSession.read.schema(drawn.schema).parquet(hidden)
    tasks, attempts, found = (column.to_numpy() for column in written.groupBy(task, attempt).count().toArrow().columns)
    check_attempts(tasks, attempts, found, rows)
    left = written.drop(task, attempt)
    return left.orderBy(tag).drop(tag) if keep_order else shuffle_rows(left)


def check_attempts(tasks: IntArray, attempts: IntArray, rows: IntArray, expected: int) -> None:
    """Refuse unless one attempt at each task wrote, and all of them together as many rows as were counted.

    >>> check_attempts(np.array([0, 1]), np.array([17, 4]), np.array([3, 2]), 5)
    """
    again = len(np.unique(np.stack([tasks, attempts]), axis=1).T) - len(np.unique(tasks))
    if again:
        raise GuaranteeError(
            f"one attempt at each task must have written its rows; of {again:,} tasks two did, so that rows would be "
            "published twice. Nothing was published. Use a committer of Spark that is safe for repeated tasks."
        )
    if rows.sum() != expected:
        raise TableError(
            f"a table must stay as it is while it is read; {expected:,} rows were counted and {int(rows.sum()):,} "
            "drawn. Nothing was published. Write the frame to files first, and read these."
        )

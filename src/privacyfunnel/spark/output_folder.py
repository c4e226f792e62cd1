"""Folders on the file system of a cluster that appear complete or not at all.

Files are written below a hidden folder beside the final name, which only its owner can enter. The complete folder is
renamed: atomically on HDFS and local file systems, by copying on object stores. After a failure the final name does
not exist, and the hidden folder is removed.

Rows without ids: drawn once, though Spark may run any task again.

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

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import OWNER, PUBLIC
from privacyfunnel.errors import GuaranteeError, OutputError, ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.formats import STEM

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


PARQUET, CSV = "parquet", "csv"
FORMATS = (PARQUET, CSV)
WHOLE = "whole"
OWNERS_FOLDER, OWNERS_ONLY, EVERYBODYS = "700", "600", "644"


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """What is to appear: a folder of rows, or a release with these in `public` and small files in `owner`."""

    into: str
    format: str = PARQUET
    force: bool = False
    described: bool = False  # whether there are such files

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ParameterError(f"Spark writes rows as one of {', '.join(FORMATS)}; not as '{self.format}'.")

    @property
    def subpath(self) -> str:
        """Where the rows are, below the folder that appears."""
        return f"/{PUBLIC}/{STEM}.{self.format}" if self.described else ""

    @property
    def table(self) -> str:
        """Where the rows are when all is done."""
        return f"{self.into.rstrip('/')}{self.subpath}"


def is_classic(session: Any) -> bool:
    """Whether the session runs in a Java process of its own, and not over Spark Connect."""
    return hasattr(session, "_jvm")


class HiddenFolder:
    """The folder while it is hidden."""

    def __init__(self, session: Any, files: OutputFiles) -> None:
        self._files, self._hadoop = files, session._jvm.org.apache.hadoop.fs
        self._conf = session._jsc.hadoopConfiguration()
        self._never_over = session._sc._gateway.new_array(self._hadoop.Options.Rename, 0)
        named = self._hadoop.Path(files.into)
        self._system = self._hadoop.FileSystem.newInstance(named.toUri(), self._conf)
        self._system.setWriteChecksum(False)  # which would lie beside a file of ours
        self._final = self._system.makeQualified(named)
        self.tag = secrets.token_hex(8)  # of its jobs, too
        self._root = self._hadoop.Path(self._final.getParent(), f".{named.getName()}.{self.tag}")

    def final_name(self, below: str) -> Path | str:
        """Where something below the folder is when all is done, as a ledger names it."""
        name = f"{self._final.toString()}{below}"
        return Path(name.removeprefix("file:")) if name.startswith("file:") else name

    def begin(self) -> None:
        """Make the hidden folder; before hours are spent, refuse a name that is taken."""
        if not self._files.force and self._system.exists(self._final):
            raise OutputError(f"'{self._files.into}' is there already. Name another folder, or use {hint('force')}.")
        self._system.mkdirs(self._root, self._hadoop.permission.FsPermission(OWNERS_FOLDER))

    def path(self, name: str) -> str:
        """A place that gets no final name by itself."""
        return f"{self._root.toString()}/{name}"

    def write(self, rows: Any) -> None:
        """The rows."""
        writing = rows.write.format(self._files.format).option("header", "true").option(*COMMITTER)
        writing.save(self.path(f"{WHOLE}{self._files.subpath}"))

    def describe(self, name: str, text: str, *, public: bool = False) -> None:
        """A file of the owner's, in a folder that nobody else can enter; or one for everybody, beside the rows."""
        folder = self._hadoop.Path(self.path(WHOLE if public else f"{WHOLE}/{OWNER}"))
        if not public:
            self._system.mkdirs(folder, self._hadoop.permission.FsPermission(OWNERS_FOLDER))
        path = self._hadoop.Path(folder, name)
        stream = self._system.create(path)
        stream.write(bytearray(text.encode()))
        stream.close()
        self._system.setPermission(path, self._hadoop.permission.FsPermission(EVERYBODYS if public else OWNERS_ONLY))

    def publish(self) -> None:
        """All of it gets its final name, and what had that name goes; a folder is never moved into another."""
        names = self._hadoop.FileContext.getFileContext(self._system.getUri(), self._conf)
        if self._files.force and self._system.exists(self._final):
            names.rename(self._final, self._hadoop.Path(self.path("replaced")), self._never_over)
        names.rename(self._hadoop.Path(self.path(WHOLE)), self._final, self._never_over)

    def remove(self) -> None:
        """What is hidden goes."""
        self._system.delete(self._root, True)
        self._system.close()


@contextmanager
def atomic_folder(session: Any, files: OutputFiles) -> Iterator[HiddenFolder]:
    """A hidden folder that gets its final name if all goes well, and is gone in any case."""
    from py4j.protocol import Py4JError

    if not is_classic(session):
        raise ParameterError(
            "Over Spark Connect a folder cannot be renamed, so none is written. Name a column that tells rows apart "
            "(row_id), and write the frame that you get."
        )
    try:
        folder = HiddenFolder(session, files)
        folder.begin()
    except Py4JError as error:
        raise OutputError(f"'{files.into}' must be a folder that Spark can write; it is not. Name another.") from error
    session.addTag(folder.tag)
    try:
        yield folder
        try:
            folder.publish()
        except Py4JError as error:
            raise OutputError(
                f"'{files.into}' must be free when all is written; it was not, or its file system cannot rename a "
                "folder. Nothing was published. Name another."
            ) from error
    finally:
        with suppress(Py4JError):  # the file system, or all of Spark, may be gone
            session.interruptTag(folder.tag)  # what still runs would write on
            session.removeTag(folder.tag)
            folder.remove()

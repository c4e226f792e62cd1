"""Dialects: how the text of a table is to be read where it does not say so itself, and written again."""

from dataclasses import dataclass

from privacyfunnel.tables.readers.number_format import NumberFormat


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the owner says of a file; None stands for what is found by itself.

    `delimiter` separates fields, `encoding` names how characters became bytes, `decimal` is the decimal mark, `missing`
    are texts that mean a missing number besides the usual ones, and `sheet` is the sheet of a workbook. `person` is the
    column that tells persons apart, each of whom is read as one row: as all of theirs are, or as `person_row` says,
    their "first" or "last".
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    person: str | None = None
    person_row: str | None = None

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written where the file itself does not tell."""
        return NumberFormat(self.decimal or ".", self.missing)


AUTO_DETECT = Dialect()


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a table is written as text: as the one that it was made from, so that the same programs open it."""

    delimiter: str = ","
    encoding: str = "utf-8"
    byte_order_mark: bool = (
        False  # whether a byte order mark goes before UTF-8, without which Excel takes it for something else
    )
    decimal: str = "."
    detection_notes: tuple[str, ...] = ()  # what of this was found by itself, where it is not as usual, in words


DEFAULT_TEXT_FORMAT = TextFormat()

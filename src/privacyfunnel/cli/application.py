"""What all commands share: how they start, what they print, and how they fail.

Exit codes: 0 done; 2 the user can mend it, and one sentence says how; 1 ours; 130 interrupted; 143 terminated.
With --json an error is an object too: its code, sentence and exit code, and whether the same run may succeed later.
"""

import json
import logging
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from types import FrameType
from typing import Annotated, Any, NoReturn, TextIO
from uuid import uuid4

import typer

from privacyfunnel import __version__
from privacyfunnel.cli.text_format import make_printable
from privacyfunnel.errors import InputError, OutputError, PrivacyFunnelError
from privacyfunnel.hints import word_for_command_line
from privacyfunnel.tables.databases.drivers import redact_credentials

OURS, THEIRS = 1, 2  # exit codes: a fault of the program, something the user can mend
SIGNALLED = 128  # and the number of the signal that ended it, as shells count: 130 for Ctrl-C
ENDINGS = {"SIGINT": "Interrupted", "SIGTERM": "Terminated", "SIGHUP": "Hung up"}  # signals, and what they did
UNWINDING = 1.0  # seconds: a second Ctrl-C must not disturb how the first removes what it finds half-written

# Matrices are small and many here: threads would mostly wait for each other, on a busy machine for nearly all the time.
LINEAR_ALGEBRA = ("OPENBLAS", "OMP", "MKL")  # what numpy may use; it reads this when it is imported

HELP = {"-h", "--help"}
LOG = logging.getLogger("privacyfunnel")


@dataclass(frozen=True)
class CommandRun:
    """One run of a command: what its JSON and its log lines name it by."""

    name: str = field(default_factory=lambda: uuid4().hex[:12])
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def to_dict(self) -> dict[str, Any]:
        seconds = (datetime.now(UTC) - self.began).total_seconds()
        began = self.began.isoformat(timespec="seconds")
        return {"id": self.name, "version": __version__, "began": began, "seconds": round(seconds, 3)}


_RUN: ContextVar[CommandRun] = ContextVar("run")  # that is under way

# Where typer keeps this class has moved; that the error of a bad parameter is one has not.
UsageError: type[Any] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="privacyfunnel",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": sorted(HELP), "max_content_width": 110},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.callback(
    epilog="Start with: privacyfunnel demo. If something breaks, add --debug to see where. --log logs to stderr."
)
def _privacyfunnel(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Publish a table without giving away its secret column."""


def main(arguments: Sequence[str] | None = None, commands: typer.Typer = app, prog_name: str = "privacyfunnel") -> int:
    """Run a command; the process's exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug, as_json = "--debug" in words, "--json" in words
    run = CommandRun()
    _RUN.set(run)
    if "--log" in words:
        _log_to_stderr(run)
    words = [word for word in words if word not in {"--debug", "--log"}] or ["--help"]
    LOG.info("%s begins", words[0])
    with _record_end_signals() as endings:
        try:
            code = _run(words, commands, prog_name)
        except SystemExit:
            raise
        except BaseException as error:
            if debug:
                complain(traceback.format_exc())
            sentence, code = _failure(error)
            if not endings:
                complain(make_printable(sentence, one_line=True))
                _answer_error(as_json, sentence, code, retry=getattr(error, "retry", False))
    if endings:  # libraries may turn the exception into one of their own, and typer turns it into an exit code
        sentence, code = f"{ENDINGS[endings[0].name]}. Nothing was left half-written.", SIGNALLED + endings[0]
        complain(sentence)
        _answer_error(as_json, sentence, code, retry=True)
    code = code if isinstance(code, int) else 0
    LOG.info("%s ends with %d after %.1f s", words[0], code, run.to_dict()["seconds"])
    return code


def _log_to_stderr(run: CommandRun) -> None:
    """Log lines of this run to standard error, for whoever asks for them; a program of one's own has its handlers."""
    logging.basicConfig(format=f"%(asctime)s %(levelname)s {run.name} %(name)s: %(message)s")
    LOG.setLevel(logging.INFO)


def _answer_error(as_json: bool, sentence: str, code: int, *, retry: bool) -> None:
    """The error as one JSON object on standard output, where JSON was asked for."""
    if as_json:
        kind, colon, message = sentence.partition(": ")
        content = {"code": kind if colon else "Interrupted", "message": message if colon else sentence}
        with suppress(PrivacyFunnelError):
            answer(True, {"error": {**content, "exit": code, "retry": retry}}, "")


def _run(words: list[str], commands: typer.Typer, prog_name: str) -> Any:
    """Run a command. Its help is printed here, since typer fails where a reader has left."""
    if words[0] == "--version":
        show(f"privacyfunnel {__version__}")
        return 0
    commands = _select_command(commands, words[0])
    if not {*HELP, "--help-all"}.intersection(words):
        return commands(words, prog_name=prog_name, standalone_mode=False)
    with redirect_stdout(StringIO()) as printed:
        code = commands(words, prog_name=prog_name, standalone_mode=False)
    show(printed.getvalue().rstrip("\n"))
    return code


def _select_command(commands: typer.Typer, word: str) -> typer.Typer:
    """The command of that name alone, where there is one: the options of all others need not be made."""
    chosen = [command for command in commands.registered_commands if getattr(command.callback, "__name__", "") == word]
    if chosen:
        commands = copy(commands)
        commands.registered_commands = chosen
    return commands


def program(commands: typer.Typer = app, prog_name: str = "privacyfunnel") -> NoReturn:
    """The command line as a program of its own: when all is done and said, the process ends at once.

    Taking down everything that was imported, module by module, would take longer than the work on a small table.
    Whoever profiles or traces the program sees it end in the usual way.
    """
    _fill_closed_streams()
    for library in LINEAR_ALGEBRA:
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    code = main(None, commands, prog_name)
    if sys.getprofile() is None and sys.gettrace() is None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # nobody listens any more, or did ever
                stream.flush()
        os._exit(code)
    sys.exit(code)


def answer(as_json: bool, content: Mapping[str, Any], text: str) -> None:
    """Print what a command found: its content as one JSON object, or its text."""
    if as_json:
        content = {**content, "run": _RUN.get(CommandRun()).to_dict()}
        text = json.dumps(to_json_value(content), ensure_ascii=False, allow_nan=False)
        text = make_printable(word_for_command_line(text), as_json=True)
    else:
        text = redact_credentials(word_for_command_line(text))
    show(text)


def show(text: str) -> None:
    """Print; a reader who left is no error."""
    try:
        _print(make_printable(text), sys.stdout)
    except BrokenPipeError:
        # Python flushes once more at exit; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise OutputError(
            f"Cannot print the answer: {os.strerror(error.errno or 0).lower()}. Files that were asked for "
            "are complete; print the answer elsewhere."
        ) from error


def complain(text: str) -> None:
    """Print to standard error what went wrong; where that is closed, the exit code still tells."""
    with suppress(OSError, ValueError):
        _print(make_printable(redact_credentials(text)), sys.stderr)


def _print(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed before the program began
        return
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        print(text.encode(stream.encoding, "replace").decode(stream.encoding), file=stream, flush=True)


def _fill_closed_streams() -> None:
    """A file opened later must not get the number of a closed stream: a library that prints would write into it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one


def to_json_value(value: Any) -> Any:
    """The value as JSON can hold it; a number without bound becomes null, and in an object `…_is` says what it is.

    >>> to_json_value({"epsilon": math.inf})
    {'epsilon': None, 'epsilon_is': 'unbounded'}
    """
    if isinstance(value, Mapping):
        held = {str(key): to_json_value(item) for key, item in value.items()}
        odd = {key: item for key, item in value.items() if isinstance(item, float) and not math.isfinite(item)}
        return {**held, **{f"{key}_is": "unknown" if math.isnan(item) else "unbounded" for key, item in odd.items()}}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, str):
        return redact_credentials(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def is_terminal() -> bool:
    """Whether somebody watches, who would like to see progress."""
    return sys.stderr.isatty()


@contextmanager
def show_progress() -> Iterator[tuple[Callable[[float, float], None] | None, Callable[[str, int], None] | None]]:
    """Two functions: one shows utility, bound and gap of a proof on its way, one what is done with how many rows.

    None for both where nobody watches.
    """
    if not is_terminal():
        yield None, None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("working", spinner="line") as status:
        yield (
            lambda utility, bound: status.update(
                f"utility {utility:.6f}   bound {bound:.6f}   gap {bound - utility:.1e} nats"
            ),
            lambda doing, rows: status.update(f"{doing} {rows:,} rows" if rows else doing),
        )


class EndSignals:
    """What answers a signal that asks the program to end: it raises as Ctrl-C does, so that all is tidied up.

    It remembers what came, for an exception can be lost where Python ignores it (in a destructor, say), and whoever is
    about to publish looks here (`tables.holding`).
    """

    def __init__(self) -> None:
        self.came: list[signal.Signals] = []
        self._raised = -math.inf

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came.append(signal.Signals(number))
        if time.monotonic() - self._raised > UNWINDING:
            self._raised = time.monotonic()
            raise KeyboardInterrupt


@contextmanager
def _record_end_signals() -> Iterator[list[signal.Signals]]:
    """The signals that asked the program to end."""
    endings = EndSignals()
    numbers = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    heard = [n for n in numbers if n == signal.SIGINT or signal.getsignal(n) != signal.SIG_IGN]  # nohup means it
    before = {number: signal.signal(number, endings) for number in heard}
    try:
        yield endings.came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failure(error: BaseException) -> tuple[str, int]:
    """One sentence for what went wrong, and the exit code that says whose it is to mend."""
    kind = type(error).__name__
    if isinstance(error, PrivacyFunnelError):
        return f"{kind}: {word_for_command_line(error.sentence)}", THEIRS if isinstance(error, InputError) else OURS
    if isinstance(error, UsageError):
        message = " ".join(str(error.format_message()).split())
        command = error.ctx.command_path if error.ctx else "privacyfunnel"
        stop = "" if message.endswith((".", "?")) else "."
        return f"ParameterError: {message}{stop} See '{command} --help'.", THEIRS
    if isinstance(error, KeyboardInterrupt):  # raised by the program itself, not by a signal
        return "Interrupted. Nothing was left half-written.", SIGNALLED + signal.SIGINT
    if isinstance(error, MemoryError):
        return "SizeError: this needs more memory than there is. Merge rare values or publish fewer columns.", THEIRS
    # The text of a foreign error may quote the data.
    return f"{kind}: this is a fault of privacyfunnel; add --debug to see where, and report it.", OURS

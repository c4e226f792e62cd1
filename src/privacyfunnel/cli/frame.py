"""What all commands share: how they start, what they print, and how they fail.

Exit codes: 0 done; 2 the user can mend it, and one sentence says how; 1 ours; 130 interrupted; 143 terminated.
"""

import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from privacyfunnel import __version__
from privacyfunnel.errors import InputError, PrivacyFunnelError

OURS, THEIRS = 1, 2  # exit codes: a fault of the program, something the user can mend
SIGNALLED = 128  # and the number of the signal that ended it, as shells count: 130 for Ctrl-C
ENDINGS = {"SIGINT": "Interrupted", "SIGTERM": "Terminated", "SIGHUP": "Hung up"}  # signals, and what they did
UNWINDING = 1.0  # seconds: a second Ctrl-C must not disturb how the first removes what it finds half-written

# Where typer keeps this class has moved; that the error of a bad parameter is one has not.
UsageError: type[Any] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="privacyfunnel",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.callback(epilog="Start with: privacyfunnel demo. If something breaks, add --debug to see where.")
def _privacyfunnel(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Publish a table without giving away its secret column."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the process's exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    if words[0] == "--version":
        show(f"privacyfunnel {__version__}")
        return 0
    with _endings_noted() as endings:
        try:
            code = app(words, prog_name="privacyfunnel", standalone_mode=False)
        except SystemExit:
            raise
        except BaseException as error:
            if debug:
                traceback.print_exc()
            sentence, code = _failure(error)
            if not endings:
                print(sentence, file=sys.stderr)
    if endings:  # libraries may turn the exception into one of their own, and typer turns it into an exit code
        print(f"{ENDINGS[endings[0].name]}. Nothing was left half-written.", file=sys.stderr)
        return SIGNALLED + endings[0]
    return code if isinstance(code, int) else 0


def program() -> NoReturn:
    """The command line as a program of its own: when all is done and said, the process ends at once.

    Taking down everything that was imported, module by module, would take longer than the work on a small table.
    Whoever profiles or traces the program sees it end in the usual way.
    """
    code = main()
    if sys.getprofile() is None and sys.gettrace() is None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody listens any more
                stream.flush()
        os._exit(code)
    sys.exit(code)


def answer(as_json: bool, content: Mapping[str, Any], text: str) -> None:
    """Print what a command found: its content as one JSON object, or its text."""
    show(json.dumps(plain(content), ensure_ascii=False, allow_nan=False) if as_json else text)


def show(text: str) -> None:
    """Print, and do not mind if nobody listens any more."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more on its way out; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "replace").decode(encoding), flush=True)


def plain(value: Any) -> Any:
    """The value as JSON can hold it; an infinite number becomes the word "inf"."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def on_terminal() -> bool:
    """Whether somebody watches, who would like to see progress."""
    return sys.stderr.isatty()


@contextmanager
def _endings_noted() -> Iterator[list[signal.Signals]]:
    """A signal that asks the program to end raises as Ctrl-C does, so that all is tidied up, and leaves a note."""
    endings: list[signal.Signals] = []
    raised = -math.inf

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        endings.append(signal.Signals(number))
        if time.monotonic() - raised > UNWINDING:
            raised = time.monotonic()
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    heard = [n for n in numbers if n == signal.SIGINT or signal.getsignal(n) != signal.SIG_IGN]  # nohup means it
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield endings
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failure(error: BaseException) -> tuple[str, int]:
    """One sentence for what went wrong, and the exit code that says whose it is to mend."""
    kind = type(error).__name__
    if isinstance(error, PrivacyFunnelError):
        return f"{kind}: {error}", THEIRS if isinstance(error, InputError) else OURS
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

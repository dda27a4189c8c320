"""The commands. They parse options, call the runtime and show what is public; they decide nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import evertally
from evertally.cli.show import Display, affordable_lines, plan_table, ways_tables
from evertally.cli.sweep import amounts_of, sweep_table
from evertally.errors import ConfigurationError, EvertallyError, InternalError, described
from evertally.runtime import Asked, StreamSpec, certificate, load_spec, plan, run
from evertally.runtime.affordable import Wanted
from evertally.runtime.follow import follow, with_folder
from evertally.runtime.input.quarantine import Quarantine
from evertally.runtime.input.sources import InputFile, PipedInput
from evertally.runtime.releases import TickRelease

if TYPE_CHECKING:
    from evertally.service import TokenFile

# Pretty tracebacks print local variables, and those hold records.
app = typer.Typer(
    help="Live statistics over a stream of personal events, under one privacy guarantee for its whole life.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_option = partial(typer.Option, show_default=False)  # a default that is None says nothing
Replay = Annotated[bool, typer.Option("--replay", help="Continue from older state, fed exactly the same input again.")]
NothingReleased = Annotated[
    bool,
    typer.Option("--nothing-was-released", help="The key is there, but no state: nothing was ever released under it."),
]
SpecFile = Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The stream spec.", show_default=False)]


_HIDDEN = "Its text is not shown because it may hold data. Please report it"


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"evertally {evertally.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold records and the key


# What is true of a command that is interrupted: it goes on, it has changed nothing, or nobody knows how far it came.
_GOES_ON = "the same command continues where it stopped"
_NOTHING_KEPT = "nothing of it is kept: the same command begins anew"
_UNKNOWN = "look whether it was done before you repeat it"


@contextmanager
def _readable_errors(extra: str = "", interrupted: str = _UNKNOWN) -> Iterator[None]:
    """One line on stderr and exit code 2 for what is refused; no traceback or warning ever, it could show records.

    `extra`: what to install if what a command needs is not there. `interrupted`: what to do then.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of libraries quote the cell that they are about
            yield
    except InternalError as error:
        print(f"evertally: {error}. {_HIDDEN}", file=sys.stderr)
        raise typer.Exit(3) from None
    except EvertallyError as error:
        print(f"evertally: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except typer.Abort as error:  # of a question: an end of the input is no answer, everything else an interruption
        unanswered = isinstance(error.__context__, EOFError)
        print(f"\nevertally: {'nobody answers; see --help' if unanswered else 'interrupted'}", file=sys.stderr)
        raise typer.Exit(2 if unanswered else 130) from None
    except KeyboardInterrupt:
        print(f"evertally: interrupted; {interrupted}", file=sys.stderr)
        raise typer.Exit(130) from None
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != 1:  # with 1 rich says that nobody reads
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the end would write into it once more
        print("evertally: nobody reads what is printed; stopped", file=sys.stderr)
        raise typer.Exit(2) from None
    except typer.Exit:
        raise
    except Exception as error:
        if extra and isinstance(error, ModuleNotFoundError):
            missing, install = (error.name or "").partition(".")[0], f"pip install 'evertally[{extra}]'"
            print(f"evertally: this needs {missing}; install it with: {install}", file=sys.stderr)
            raise typer.Exit(2) from None
        print(f"evertally: internal error, {described(error)}. {_HIDDEN}", file=sys.stderr)
        raise typer.Exit(3) from None


@app.command("plan")
def plan_command(
    spec_file: SpecFile,
    ways: Annotated[bool, typer.Option("--ways", help="Show every way to release each query, best first.")] = False,
    error: Annotated[float | None, _option(min=0, help="Which guarantee has this error, and which horizon?")] = None,
    beta: Annotated[
        float | None, _option(help=escape("With --error: the probability of a larger one. Default: [output] beta."))
    ] = None,
    query: Annotated[str | None, _option(help="With --error: of this query alone.")] = None,
    count: Annotated[int | None, _option(help="With --error: of means of at least so many values, too.")] = None,
    sweep: Annotated[str | None, _option(help='Errors under several guarantees: "0.1,0.3,1,3" for epsilon.')] = None,
    picture: Annotated[
        Path | None, _option(metavar="FILE", help="With --sweep: draws it, as .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Show what will be released, by which mechanism and with what error, before any data is read."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        spec = load_spec(spec_file)
        if error is None and any(given is not None for given in (beta, query, count)):
            raise ConfigurationError("--beta, --query and --count go with --error, and only with it")
        if picture is not None and (sweep is None or error is not None):
            raise ConfigurationError('--picture goes with --sweep "0.1,0.3,1,3", and only with it')
        if error is not None:
            affordable_lines(Wanted(spec, error, beta, query, count))
        elif sweep is not None:
            sweep_table(spec, amounts_of(sweep), picture)
        elif ways:
            ways_tables(spec)
        else:
            plan_table(spec, plan(spec))


@app.command("init")
def init_command(
    spec_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPEC.toml", help="The file to write. Default: named like the sample.", show_default=False
        ),
    ] = None,
    sample: Annotated[
        Path | None, _option("--from", metavar="FILE", help="Test data: its header names the columns.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take what would be offered.")] = False,
    start: Annotated[str | None, _option(help="Where the first tick begins.")] = None,
    tick: Annotated[str | None, _option(help='Length of a tick, such as "1d".')] = None,
) -> None:
    """Write a commented spec, from a few questions. Nothing is ever overwritten."""
    with _readable_errors():
        from evertally.cli import init

        path = init.command(spec_file, sample, yes, start, tick)
        print(f"{path} is written. Look at it, then: evertally plan {path}")


@app.command("check")
def check_command(
    spec_file: SpecFile,
    sample: Annotated[
        Path | None, _option(metavar="FILE", help="Test data: which of its rows and columns match, and what is cut.")
    ] = None,
) -> None:
    """Try a spec on test data, without key and state. Exit status 1 if nothing of the sample would be counted."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        from evertally.cli import check

        if not check.command(spec_file, sample):
            raise typer.Exit(1)


@app.command("certificate")
def certificate_command(spec_file: SpecFile) -> None:
    """Print what the stream promises, to whom and by which theorems, as JSON."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        print(json.dumps(certificate(load_spec(spec_file)), indent=2, allow_nan=False))


@app.command("run")
def run_command(
    spec_file: SpecFile,
    input_file: Annotated[
        str | None,
        _option("--input", "-i", help="Events: .csv, .jsonl, .parquet or .arrow; - is standard input, with --format."),
    ] = None,
    input_format: Annotated[str | None, _option("--format", help="Of a pipe: csv, jsonl, parquet or arrow.")] = None,
    folder: Annotated[
        Path | None, _option("--follow", help="A folder that is being written; ticks close on the wall clock.")
    ] = None,
    until: Annotated[
        str | None,
        _option(metavar="TIME", help='With --input: release up to here (a tick boundary), or "end": the whole stream.'),
    ] = None,
    drop_late: Annotated[
        bool,
        typer.Option("--drop-late", help="Leave out rows of ticks that are out: earlier runs counted them."),
    ] = False,
    count_late: Annotated[
        bool, typer.Option("--count-late", help="Count rows of ticks that are out in the first tick that comes.")
    ] = False,
    leave_later: Annotated[
        bool, typer.Option("--leave-later", help="Leave rows at or after --until, for a later run with --drop-late.")
    ] = False,
    drop_unreadable: Annotated[
        bool, typer.Option("--drop-unreadable", help="Go on even if no row has a readable time.")
    ] = False,
    replay: Replay = False,
    nothing_was_released: NothingReleased = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")] = False,
) -> None:
    """Release the ticks of a stream from a file, a pipe or a folder of events. State survives: the next run goes on."""
    with _readable_errors(interrupted=_GOES_ON):
        spec = load_spec(spec_file)
        if (input_file is None) == (folder is None):
            raise ConfigurationError("give either --input FILE or --follow FOLDER")
        if drop_late and count_late:
            raise ConfigurationError("late rows are either dropped or counted: --drop-late or --count-late")
        asked = Asked(
            late="drop" if drop_late else "count" if count_late else "refuse",
            later="leave" if leave_later else "refuse",
            unreadable="drop" if drop_unreadable else "refuse",
        )
        if folder is not None:
            if asked != Asked() or until is not None:
                raise ConfigurationError(
                    "--until, --drop-late, --count-late, --leave-later and --drop-unreadable are for --input"
                )
            _follow(with_folder(spec, folder), replay, nothing_was_released, quiet)
            return
        source = _input(str(input_file), input_format)
        last = _until(spec, until)
        display = Display(spec, quiet)
        with display:
            report = run(spec, source, last, display.step, replay, asked, display.announce, nothing_was_released)
        if not quiet:
            end = spec.clock.end_of(report.last)
            print(f"{spec.name}: ticks {report.first} to {report.last} are out, until {end}; see {_places(spec)}")


def _input(name: str, input_format: str | None) -> InputFile:
    if (name == "-") != (input_format is not None):
        raise ConfigurationError("--format goes with --input -, and only with it")
    return InputFile(name) if input_format is None else PipedInput(sys.stdin.buffer, input_format)


def _until(spec: StreamSpec, until: str | None) -> str | None:
    """How far a run goes; None: to the end. Never by itself: a file of January would close all of February, empty."""
    if until is not None:
        return None if until == "end" else until
    whole = "" if spec.last_tick is None or spec.clock.floating else f" ({spec.clock.end_of(spec.last_tick)})"
    end = "" if spec.last_tick is None else f", or --until end for the whole stream{whole}"
    raise ConfigurationError(
        f"say how far to go: --until TIME, up to where the file is complete{end}. Every tick before that is released "
        "and closed for good, also where the file has no rows"
    )


def _places(spec: StreamSpec) -> str:
    return ", ".join(str(sink.file) for sink in spec.sinks if sink.file is not None) or str(spec.state_file)


def _follow(spec: StreamSpec, replay: bool, nothing_was_released: bool, quiet: bool) -> None:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())

    def seen(release: TickRelease) -> None:
        if not quiet:
            print(f"{spec.name}: tick {release.tick} is out, until {release.time}", flush=True)

    def trouble(problem: str) -> None:
        print(f"evertally: {problem}", file=sys.stderr, flush=True)

    follow(spec, stopped, seen, trouble, replay, nothing_was_released)
    if not quiet:
        print(f"{spec.name}: stopped; the same command goes on. Releases: {_places(spec)}")


@app.command("serve")
def serve_command(
    spec_file: SpecFile,
    host: Annotated[str | None, _option(help=escape("Instead of [serve] host."))] = None,
    port: Annotated[
        int | None, _option(min=0, max=65535, help=escape("Instead of [serve] port; 0: any free one."))
    ] = None,
    replay: Replay = False,
    nothing_was_released: NothingReleased = False,
) -> None:
    """Run a live stream: events come in over HTTP, releases go out, a page shows them."""
    with _readable_errors("serve", interrupted=_GOES_ON):
        from evertally.cli import serve

        serve.command(spec_file, host, port, replay, nothing_was_released)


@app.command("erase")
def erase_command(
    spec_file: SpecFile,
    users: Annotated[
        str,
        _option("--users", help="A file with one name on each line; - is standard input. Never the names themselves."),
    ],
) -> None:
    """Erase users from the state of a stream that is not running: names become digests that are never counted again."""
    with _readable_errors():
        from evertally.runtime.erasure import erase

        spec = load_spec(spec_file)
        names = _names(users)
        tick = erase(spec, names)
        print(f"{spec.name}: {len(names)} names are erased from the state of tick {tick}. Destroy older copies of it")


def _names(file: str) -> list[str]:
    """Names from a file: on the command line every user of the machine could read them."""
    try:
        text = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read the file of --users: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError("the file of --users is not UTF-8; write one name on each line") from None
    lines = (line.removesuffix("\r") for line in text.split("\n"))  # a name may hold any other separator
    names = [line for line in lines if line]
    if not names:
        raise ConfigurationError("the file of --users names nobody; write one name on each line")
    return names


@app.command("windows")
def windows_command(
    spec_file: SpecFile,
    query: Annotated[str | None, _option(help="Of this query; needed where there are several.")] = None,
    window: Annotated[
        str | None, _option(help='A length such as 7d, a number of ticks, or "total". Default: that of the spec.')
    ] = None,
    per: Annotated[
        str | None, _option(help="Counts as a rate, per 1d. Default: that of the spec; with --window: none.")
    ] = None,
    first: Annotated[int | None, _option("--from", min=0, help="No window begins before the end of this tick.")] = None,
    last: Annotated[int | None, _option("--to", min=1, help="The last window ends with this tick.")] = None,
    every: Annotated[int | None, _option(min=1, help="Ticks between the ends of windows. Default: the window.")] = None,
    points: Annotated[int | None, _option(min=1, help="At most so many windows, evenly thinned.")] = None,
    label: Annotated[list[str] | None, _option(help="Only this label; may be given several times.")] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
) -> None:
    """Show what happened between releases, with its exact error: sums over days or weeks, rates, changes."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        from evertally.cli import windows

        limits = {"first": first, "last": last, "every": every, "points": points}
        windows.command(load_spec(spec_file), query, window, per, form, label or [], **limits)


@app.command("verify")
def verify_command(
    subject: Annotated[
        Path,
        typer.Argument(metavar="SUBJECT", help="SPEC.toml, or CERTIFICATE.json with --head.", show_default=False),
    ],
    log: Annotated[
        list[Path] | None,
        _option(metavar="FILE", help="A published log: .jsonl, .csv, .parquet, .json of /v1/releases."),
    ] = None,
    head: Annotated[Path | None, _option(metavar="FILE", help="What `evertally head` or /v1/head has said.")] = None,
) -> None:
    """Check a state, or a published log against a certificate. Exit status 1 if anything is not what was released."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        from evertally.cli import verify

        if not verify.command(subject, log or [], head):
            raise typer.Exit(1)


@app.command("head")
def head_command(
    spec_file: SpecFile,
    digests: Annotated[bool, typer.Option("--digests", help="With a digest of every tick that is kept.")] = False,
) -> None:
    """Print what vouches for the release log, signed, as JSON. Public."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        from evertally.cli import verify

        verify.print_head(spec_file, digests)


@app.command("rescue")
def rescue_command(
    spec_file: SpecFile,
    end: Annotated[bool, typer.Option("--end", help="End the stream for good; what was released stays.")] = False,
) -> None:
    """Make a stream start again whose release log is damaged, if it can be proved that it may; or end it."""
    with _readable_errors():
        from evertally.cli import verify

        verify.rescue_stream(spec_file, end)


tokens = typer.Typer(help="Bearer tokens of a live stream.", no_args_is_help=True)
app.add_typer(tokens, name="token")
TokenName = Annotated[str, _option("--name", help="Whose token it is.")]


def _tokens(spec_file: Path) -> TokenFile:
    from evertally.service import TokenFile

    return TokenFile(load_spec(spec_file).serve.tokens)


@tokens.command("add")
def token_add_command(
    spec_file: SpecFile, role: Annotated[str, _option(help="read, ingest or admin.")], name: TokenName
) -> None:
    """Make a token and print it, this once. Add a second one under the same name to rotate."""
    with _readable_errors("serve"):
        file = _tokens(spec_file)
        secret = file.add(name, role)
        print(f"This is the only time that the token is shown; {file.path} keeps its hash.", file=sys.stderr)
        print(secret)


@tokens.command("list")
def token_list_command(spec_file: SpecFile) -> None:
    """Show id, role, date and name of every token."""
    with _readable_errors("serve", interrupted=_NOTHING_KEPT):
        for token in _tokens(spec_file).tokens():
            print(f"{token.id}  {token.role:<6}  {token.created}  {token.name}")


@tokens.command("remove")
def token_remove_command(
    spec_file: SpecFile,
    name: TokenName,
    token_id: Annotated[str | None, _option("--id", help="Only the one with this id (see list).")] = None,
) -> None:
    """Remove the tokens of a name, at once and also for a running service."""
    with _readable_errors("serve"):
        removed = _tokens(spec_file).remove(name, token_id)
        print(f"removed {removed} token{'s' if removed > 1 else ''} of {name}")


aside = typer.Typer(help="Files and messages that a live stream set aside.", no_args_is_help=True)
app.add_typer(aside, name="quarantine")
HeldId = Annotated[str, typer.Argument(metavar="ID", help="Which one (see list).", show_default=False)]


def _quarantine(spec_file: Path) -> Quarantine:
    return Quarantine.beside(load_spec(spec_file).state_file)


@aside.command("list")
def quarantine_list_command(spec_file: SpecFile) -> None:
    """Show what was set aside, since when, where it failed, and what was decided about it. Never what is in it."""
    with _readable_errors(interrupted=_NOTHING_KEPT):
        for one in _quarantine(spec_file).all():
            since = dt.datetime.fromtimestamp(one.since, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            print(f"{one.id}  {one.wish:<5}  {since}  {one.item}  {one.why}")


@aside.command("retry")
def quarantine_retry_command(spec_file: SpecFile, held: HeldId) -> None:
    """Let the stream try it again, at once if it runs. What fails again is set aside again."""
    with _readable_errors():
        print(f"{_quarantine(spec_file).decide(held, 'retry').item} will be tried again")


@aside.command("drop")
def quarantine_drop_command(spec_file: SpecFile, held: HeldId) -> None:
    """Leave out for good what has not been counted of it."""
    with _readable_errors():
        print(f"{_quarantine(spec_file).decide(held, 'drop').item} will not be counted")


spark = typer.Typer(help="Streams of many categories on a Spark cluster.", no_args_is_help=True)
app.add_typer(spark, name="spark")


@spark.command("conf")
def spark_conf_command(spec_file: SpecFile) -> None:
    """Print the properties of an application that shows nothing, as lines of a spark-defaults.conf."""
    with _readable_errors("spark", interrupted=_NOTHING_KEPT):
        from evertally.cli.spark import properties

        print("\n".join(properties(spec_file)))


Master = Annotated[
    str | None, _option("--master", help="Of a cluster, spark://host:port; all cores of this machine without.")
]
EventFormat = Annotated[str, _option("--format", help="parquet, json (lines), csv or orc.")]


@spark.command("run")
def spark_run_command(
    spec_file: SpecFile,
    events: Annotated[str, _option("--events", help="A file or folder of events.")],
    until: Annotated[str, _option(metavar="TIME", help="Release the ticks up to here, a tick boundary.")],
    batch: Annotated[str | None, _option("--batch", help="The id of this batch; its place, if none is given.")] = None,
    kind: EventFormat = "parquet",
    master: Master = None,
) -> None:
    """Release the ticks of a stream from files, on Spark. State survives: the next batch goes on."""
    with _readable_errors("spark", interrupted=_GOES_ON):
        from evertally.cli.spark import run_batch

        print(run_batch(spec_file, events, kind, batch, until, master))


@spark.command("stream")
def spark_stream_command(
    spec_file: SpecFile,
    events: Annotated[str, _option("--events", help="A folder that is being written; files appear whole.")],
    every: Annotated[str, _option("--every", help="How often a batch is cut.")] = "5 seconds",
    kind: EventFormat = "parquet",
    master: Master = None,
) -> None:
    """Release a stream from a folder as files come. With close = "request" each line of standard input is a time up to
    which ticks are over; the stream stops where it ends."""
    with _readable_errors("spark", interrupted=_GOES_ON):
        from evertally.cli.spark import run_stream

        run_stream(spec_file, events, kind, every, master, sys.stdin.readline, print)


@spark.command("submit", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def spark_submit_command(spec_file: SpecFile, context: typer.Context) -> None:
    """Call spark-submit with the properties of the stream; what follows the spec is handed on."""
    with _readable_errors("spark"):
        from evertally.cli.spark import submitted

        raise typer.Exit(submitted(spec_file, context.args))


@spark.command("take-back")
def spark_take_back_command(spec_file: SpecFile) -> None:
    """Forget from which input a batch was begun that cannot be finished, as its files cannot be read or are gone."""
    with _readable_errors("spark", interrupted=_NOTHING_KEPT):
        from evertally.cli.spark import taken_back

        typer.echo(taken_back(spec_file))


@spark.command("verify")
def spark_verify_command(
    spec_file: SpecFile,
    public_key: Annotated[str | None, _option("--public-key", help="Of the stream, as its certificate has it.")] = None,
) -> None:
    """Check what readers see: signatures, chain, every file. Needs no secret."""
    with _readable_errors("spark", interrupted=_NOTHING_KEPT):
        from evertally.cli.spark import verify

        print(verify(spec_file, public_key))


@spark.command("certificate")
def spark_certificate_command(spec_file: SpecFile) -> None:
    """Print what the stream promises, and where it is played."""
    with _readable_errors("spark", interrupted=_NOTHING_KEPT):
        from evertally.cli.spark import certificate

        print(certificate(spec_file))


@app.command("demo")
def demo_command(
    output: Annotated[Path, typer.Option(help="Folder for spec, releases and report.")] = Path("evertally-demo"),
    stay: Annotated[
        bool | None,
        typer.Option("--stay/--leave", help="Keep the page up until Ctrl-C. Default: if a person is watching."),
    ] = None,
) -> None:
    """A year of departures from New York, 2013: public data, replayed through the live service."""
    with _readable_errors("demo"):
        from evertally.cli.demo import demo

        demo(output, stay)


@app.command("audit")
def audit_command(
    subject: Annotated[
        str, typer.Argument(metavar="SUBJECT", help="SPEC.toml, a kind such as counter, or all.", show_default=False)
    ],
    epsilon: Annotated[float | None, _option(help="Claimed epsilon.")] = None,
    delta: Annotated[float | None, _option(help="Claimed delta, with --epsilon.")] = None,
    rho: Annotated[float | None, _option(help="Claimed rho (zCDP).")] = None,
    horizon: Annotated[int | None, _option(help="Number of ticks. Default: no horizon.")] = None,
    mechanism: Annotated[str, typer.Option(help="Noise process.")] = "auto",
    neighbours: Annotated[str, typer.Option(help="add_remove or replace.")] = "add_remove",
    categories: Annotated[int | None, _option(help="Of a histogram, how many.")] = None,
    max_per_event: Annotated[int | None, _option(help="Of a histogram.")] = None,
    max_weight: Annotated[int | None, _option(help="Of a counter or histogram.")] = None,
    lower: Annotated[float | None, _option(help="Of a mean. Default: 0.")] = None,
    upper: Annotated[float | None, _option(help="Of a mean. Default: 1.")] = None,
    max_events_per_user: Annotated[int | None, _option(help="Protects users instead of events.")] = None,
    effort: Annotated[str, typer.Option(help="short (seconds) or long (minutes).")] = "short",
    seed: Annotated[int, typer.Option(help="Another seed plays other games.")] = 0,
    picture: Annotated[Path | None, _option(metavar="FILE.png", help="Draw the two laws and the ROC curve.")] = None,
    output: Annotated[
        Path | None, _option(metavar="FOLDER", help="With all: write the table there, and go on from what is there.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="With all: processes that share the work.")] = 1,
    service: Annotated[
        bool, typer.Option("--service", help="With a spec: kill and restart a real service of a copy of it instead.")
    ] = False,
) -> None:
    """Try to break the promise: exact laws, closed forms and games. Exit status 0 if all hold, and the audit would have
    seen a breach; 1 if one is broken; 4 if nothing is broken, and of some the audit could not see enough."""
    with _readable_errors(interrupted=_NOTHING_KEPT if output is None else _GOES_ON):
        from evertally.cli import audit as auditor

        if service:
            raise typer.Exit(auditor.EXIT_STATUS[auditor.audit_service(Path(subject), effort, seed)])
        settings = {
            "mechanism": mechanism if mechanism != "auto" else None,
            "neighbours": neighbours if neighbours != "add_remove" else None,
            "categories": categories,
            "max_per_event": max_per_event,
            "max_weight": max_weight,
            "lower": lower,
            "upper": upper,
            "max_events_per_user": max_events_per_user,
        }
        promise = epsilon, delta, rho
        verdict = auditor.command(subject, promise, horizon, settings, effort, seed, picture, output, jobs)
        raise typer.Exit(auditor.EXIT_STATUS[verdict])

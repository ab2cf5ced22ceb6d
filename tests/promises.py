"""What tb_pastnet promises, row by row, and the bar of each.

A test shows a part of a row by `@pytest.mark.promise(NAME)`. `python3 dev.py prove` runs them all
and prints the table of docs/benchmarks/promises.md.
"""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """A row.

    Attributes:
        name: What tests call it.
        scenario: What happens.
        bar: What then has to hold.
    """

    name: str
    scenario: str
    bar: str


PROMISES = (
    Promise(
        "kill_9",
        "kill -9 at 200 random points of a training run",
        "0 acknowledged records lost; the tab opens 200 of 200; the run resumes",
    ),
    Promise(
        "cut_and_flipped",
        "a golden file cut at every byte, each bit of it flipped",
        "0 exceptions, 0 wrong values drawn, at most one segment lost",
    ),
    Promise(
        "foreign_and_future",
        "bytes that aren't ours under our name; a record of a future version",
        "that record is counted unreadable, the others are shown",
    ),
    Promise(
        "full_disk",
        "a disk that is full, then freed; the nth write, flush, rename fails, for every n",
        "training ends normally, drops are counted, all acknowledged records are readable",
    ),
    Promise(
        "deleted_logdir",
        "the log directory is deleted during training",
        "a new segment within one flush",
    ),
    Promise(
        "back_in_time",
        "the step goes back after a restore; the clock goes back; two writers at once",
        "one answer in both loaders, 0 records lost, the second writer detected",
    ),
    Promise(
        "supersession",
        "a run resumed from an earlier step, once or often, its new file torn at every byte; two "
        "writers at once in 20 ways; 20 restarts after kill -9",
        "replaced records never come back, and are counted; one picture in both loaders; no writer "
        "disappears, both have a note; no restart is mistaken for a second writer",
    ),
    Promise(
        "changed_layers",
        "resumed with a layer's shape changed, renamed, added, removed",
        "a new series and a note",
    ),
    Promise(
        "odd_values",
        "NaN, ±Inf, subnormal, −0; float16 and bfloat16; no channels, scalars, int and bool",
        "other channels exact, non-finite counted; recorded, or skipped with a reason",
    ),
    Promise(
        "large_networks",
        "10,000 layers; 10⁶ channels; 1,000 steps × 50,000 channels",
        "index under 2 MB, first picture under 1 s and 2 s, no call near 256 MiB",
    ),
    Promise(
        "default_flags", "1,000 steps, TensorBoard's default flags", "TensorBoard has all 1,000"
    ),
    Promise(
        "long_runs",
        "100,000 steps",
        "memory under a stated ceiling; the first, the last and every mask change shown",
    ),
    Promise(
        "failing_internals",
        "any exception at any internal call; a sink blocked for 60 s; Ctrl-C in a write",
        "losses and weights bit-identical; no wait; drops counted; the program ends within 2 s",
    ),
    Promise(
        "ends",
        "fork after construction; an exception, sys.exit, os._exit, SIGTERM",
        "the child never writes to the parent's file; no deadlock",
    ),
    Promise(
        "signals",
        "a signal handler calls flush, record or close, at any point within one of them",
        "0 hangs, 0 acknowledged records lost; flush there is True at 95% of the points outside "
        "close",
    ),
    Promise(
        "restarts",
        "kill -9 around restart, a step back and a second fit, on a disk, a slow and a refusing "
        "store, in four frameworks",
        "0 acknowledged records lost, the account exact",
    ),
    Promise(
        "hostile_names",
        "names with HTML, quotes, NUL, RTL, .., /, %2e, 10 kB, not UTF-8, __proto__",
        "shown verbatim; 0 dialogs, 0 errors in the console, 0 files opened by a name",
    ),
    Promise(
        "every_status",
        "every route × 200, 304, 400, 404, 405, 500",
        "0 validator warnings, one JSON shape of errors, GET only, no CORS header",
    ),
    Promise(
        "fuzz",
        "fuzzed records (atheris, Hypothesis) and requests (Hypothesis, schemathesis)",
        "only our own errors; 0 answers of 5xx",
    ),
    Promise(
        "stores",
        "stores that answer 503 or 403, don't answer, or take seconds, even at exit; kill -9 meanwhile",
        "acknowledged records readable; exit code 0; dropped records are counted",
    ),
    Promise("prefixes", "--path_prefix, /experiment/ID, a reverse proxy", "0 answers of 404"),
    Promise(
        "absent_parts",
        "no TensorFlow; a broken or missing dependency of ours",
        "TensorBoard starts, the tab says why",
    ),
    Promise(
        "versions",
        "Python 3.10 to 3.14 × oldest and newest TensorFlow, TensorBoard, NumPy, werkzeug",
        "green",
    ),
    Promise(
        "soak",
        "10 minutes of 4 readers and 1 writer, runs added and deleted meanwhile",
        "0 torn answers, p99 under 200 ms, memory flat",
    ),
    Promise(
        "no_trace",
        "modules of 40 kinds, Keras on three backends, JAX with donation: with and without a recorder",
        "0 differences of storages, versions, gradients, attributes and hooks; no error of its own",
    ),
    Promise(
        "past",
        "six ways of calling record × every kind of past × loops and optimizers of each framework",
        "each delta is NumPy's for the past that log and page name, or there is none",
    ),
    Promise(
        "written",
        "10,000 generated networks, names and channels up to and beyond all limits",
        "flush() True: each weight is shown, or listed as skipped with its reason",
    ),
    Promise(
        "runs_alone",
        "each function below index, report, export and read raises for one run of three",
        "the answers about the other two are equal, bit for bit",
    ),
    Promise(
        "failed_requests",
        "each request of the page fails in turn: 500, cut off, never answered",
        "no place says that something is missing which wasn't loaded",
    ),
    Promise(
        "fingerprint",
        "one word, two words, all signs, a roll, a permutation, -0.0, a NaN: 100,000 changes of each",
        "0 missed, in each dtype",
    ),
    Promise(
        "torch_masks",
        "torch.Masks: 15 optimizers of torch and their options × nine ways of training, by bytes "
        "and by bits; compiled; on ranks of DDP and FSDP2",
        "held bits identical; free weights those of the stock optimizer under the same rule, bit "
        "for bit, and within 1e-6 of the largest if both are compiled",
    ),
    Promise(
        "read_back",
        "a log read without TensorBoard",
        "equal to the routes bit for bit; 20 runs × 300 layers × 1,000 steps in seconds",
    ),
)

NAMES = tuple(promise.name for promise in PROMISES)

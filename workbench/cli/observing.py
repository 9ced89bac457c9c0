"""``workbench observe``: what a running query sustains, from its log; with ``--watch`` served for Prometheus."""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import signature
from pathlib import Path
from threading import Thread

from workbench import units
from workbench.answers import planned as of_a_plan
from workbench.cli import look
from workbench.cli.console import DONE, NOT_SUSTAINED, check_files, print_error, print_status, show
from workbench.cli.options import flag
from workbench.cli.progress import progress
from workbench.cli.reporting import write_report
from workbench.errors import WorkbenchError
from workbench.observing import RunningQuery, follow_log
from workbench.records import CapacityPlan, exposition, planned_to_dict
from workbench.study import gauges, observe, planned_document, write_planned

LOOPBACK = "127.0.0.1"
_POLL_S = 1.0
_USED = frozenset({"asked", "log", "query", "interval_s", "outage_min", "watch", "port", "usual"})
_FILES = ("log", "progress", "prices", "measured")


def run_observe(options: argparse.Namespace) -> int:
    """Read the log, print what it shows, and plan each target; or follow it."""
    if options.watch:
        return _watch(options)
    output = Path(options.output or f".workbench/{Path(options.log).name}-plan.json")
    asks = options.targets or options.rows
    written = options.output or (str(output) if asks else None)
    check_files((written, options.report), (options.log, options.progress, options.prices, options.measured))
    asked = {name: getattr(options, name) for name in signature(observe).parameters if hasattr(options, name)}
    with progress() as say:
        say(f"reading {options.log}")
        found = observe(**asked)
    from workbench.answers.observed import answer  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    made = answer(found, 60 * options.outage_min)
    if options.json:
        plans = None if found.planned is None else planned_to_dict(planned_document(found.planned))
        look.document(made.document() | {"plans": plans, "unplanned": found.unplanned or None})
    else:
        look.show(made)
        if found.planned is not None and found.planned.plans:
            _show_plans(found.planned.plans)
    if found.planned is not None and (found.planned.plans or options.output):
        write_planned(found.planned, output)
        if not options.json:
            what = "plans, with Spark's settings" if found.planned.plans else "the run, without a plan"
            look.whole(f"{what}: {output}")
    for rate, reason in () if found.planned is None else found.planned.refused:
        print_error(f"no plan for {units.rate(rate)}: {reason}")
    if found.unplanned:
        print_error(f"no plans: {found.unplanned}")
    files = {name: str(Path(path).resolve()) for name in _FILES if (path := asked[name])}
    given = {**asked, **files, "targets": list(options.targets) or None}
    known = {name: value for name, value in given.items() if value is not None}
    complete = options.report is None or write_report("observe", known, options.report, quiet=options.json)
    told = found.headroom.rate is not None or found.headroom.at_least > 0 or found.ending is not None
    planned = not asks or (found.planned is not None and not found.planned.refused)
    return DONE if complete and planned and told else NOT_SUSTAINED


def _show_plans(plans: Sequence[CapacityPlan]) -> None:
    look.put("", look.rows(of_a_plan.rows(plans)))
    for note in (said for plan in plans for said in of_a_plan.asked_for(plan)):
        look.line(note)
    for said, advised in of_a_plan.cautions(plans).items():
        look.advice(f"note: {said}", advised)


def _watch(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    asked = [flag(name) for name, value in vars(options).items() if value and name not in _USED]
    if asked:
        raise WorkbenchError(
            f"{', '.join(asked)}: with --watch the log is followed and served, and nothing else is answered. Leave "
            f"{'it' if len(asked) == 1 else 'them'} out, or --watch."
        )
    try:
        server = _Server((LOOPBACK, options.port), _Page)
    except OSError as error:
        raise WorkbenchError(
            f"Port {options.port} of {LOOPBACK} cannot be served: {error.strerror}. Name another with --port, or 0 for "
            "any.",
            settings=("port",),
        ) from error
    with server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        try:
            show(f"{options.log}: served at http://{LOOPBACK}:{server.server_port}/metrics; Ctrl-C ends it")
            sys.stdout.flush()
            follow_log(options.log, partial(_refresh, server, options), options.query)
        except KeyboardInterrupt:
            print_status("workbench: the watch has ended.")
        finally:
            server.shutdown()
    return DONE


def _refresh(server: "_Server", options: argparse.Namespace, queries: Sequence[RunningQuery]) -> None:
    """Serve what the log shows now, and wait."""
    if queries is not server.shown:
        told = {one.name: gauges(one, options.interval_s, 60 * options.outage_min) for one in queries}
        server.shown, server.page = queries, exposition(told).encode()
    time.sleep(_POLL_S)


class _Server(ThreadingHTTPServer):
    """A page with the latest result."""

    daemon_threads = True
    shown: Sequence[RunningQuery] | None = None
    page = b""


class _Page(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, explain="The gauges are at /metrics.")
            return
        page = self.server.page
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Print nothing: each scrape would be a line."""

"""``workbench observe --watch``: serve what a growing log shows, for Prometheus to scrape."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from workbench.cli.console import DONE, print_status, show
from workbench.cli.options import flag
from workbench.errors import WorkbenchError
from workbench.observing import RunningQuery, follow_log
from workbench.records import exposition
from workbench.study import gauges

LOOPBACK = "127.0.0.1"
_POLL_S = 1.0
_USED = frozenset({"asked", "log", "query", "interval_s", "outage_min", "watch", "port", "usual"})


def watch(options: argparse.Namespace, sleep: Callable[[float], None] = time.sleep) -> int:
    """Serve until Ctrl-C; `sleep` waits between two looks at the log."""
    asked = [flag(name) for name, value in vars(options).items() if value and name not in _USED]
    if asked:
        raise WorkbenchError(
            f"{', '.join(asked)}: with --watch the log is followed and served, and nothing else is answered. Leave "
            f"{'it' if len(asked) == 1 else 'them'} out, or --watch."
        )
    with _server(options.port) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        try:
            show(f"{options.log}: served at http://{LOOPBACK}:{server.server_port}/metrics; Ctrl-C ends it")
            sys.stdout.flush()
            follow_log(options.log, partial(_refresh, server, options, sleep), options.query)
        except KeyboardInterrupt:
            print_status("workbench: the watch has ended.")
        finally:
            server.shutdown()
    return DONE


def _refresh(
    server: "_Server", options: argparse.Namespace, sleep: Callable[[float], None], queries: Sequence[RunningQuery]
) -> None:
    """Serve what the log shows now, and wait."""
    if queries is not server.shown:
        told = {one.name: gauges(one, options.interval_s, 60 * options.outage_min) for one in queries}
        server.shown, server.page = queries, exposition(told).encode()
    sleep(_POLL_S)


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


def _server(port: int) -> _Server:
    try:
        return _Server((LOOPBACK, port), _Page)
    except OSError as error:
        raise WorkbenchError(
            f"Port {port} of {LOOPBACK} cannot be served: {error.strerror}. Name another with --port, or 0 for any.",
            settings=("port",),
        ) from error

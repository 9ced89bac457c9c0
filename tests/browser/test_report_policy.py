"""What a notebook by a stranger can do in a report that is opened in a browser: nothing but be read."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import nbformat
import pytest

from workbench.report import export_executed

pytestmark = pytest.mark.browser

CHART = {
    "data": [{"type": "scatter", "x": [1, 2], "y": [3, 4], "name": "&lt;b&gt;"}],
    "layout": {"title": {"text": "a chart"}, "meta": {"finding": "a chart"}},
}
SCRIPTS = (
    "<script>window.ran = 'an inline script'</script>",
    "<img src='data:image/png;base64,AAAA' onerror=\"window.ran = 'a handler'\">",
    "<a id='link' href=\"javascript:window.ran = 'an address'\">look</a>",
    "<svg onload=\"window.ran = 'a drawing'\"></svg>",
    "<iframe srcdoc=\"<script>parent.ran = 'a frame'</script>\"></iframe>",
)


@pytest.fixture
def report(tmp_path):
    def write(*outputs):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [
            nbformat.v4.new_code_cell(
                outputs=[nbformat.v4.new_output("display_data", output) for output in outputs], execution_count=1
            )
        ]
        nbformat.write(notebook, tmp_path / "executed.ipynb")
        return export_executed(tmp_path / "executed.ipynb", tmp_path / "report.html").path

    return write


def test_the_figures_draw_and_scripts_of_the_notebook_do_not_run(page, report):
    made = report({"text/html": "".join(SCRIPTS)}, {"application/javascript": "window.ran = 'an output'"},
                  {"application/vnd.plotly.v1+json": CHART})  # fmt: skip
    page.goto(made.as_uri())
    page.locator(".report-chart .main-svg").first.wait_for()
    page.locator("#link").click()
    assert page.evaluate("window.ran || null") is None
    assert page.evaluate("typeof Plotly") == "object"
    assert page.requested == [made.as_uri()]
    assert len(page.problems) >= len(SCRIPTS)  # the browser says what it refused


@pytest.fixture
def outside():
    """A server on this machine: its address, and what it was asked for."""
    asked = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_what_is_outside_is_refused(page, report, outside):
    address, asked = outside
    made = report({"application/vnd.plotly.v1+json": CHART})
    page.goto(made.as_uri())
    page.locator(".report-chart .main-svg").first.wait_for()
    assert page.problems == []
    refused = page.evaluate(
        """address => new Promise(done => {
            const seen = [];
            addEventListener("securitypolicyviolation", event => {
                seen.push(event.effectiveDirective.replace("script-src-elem", "script-src"));
                if (seen.length === 3) done(seen.sort());
            });
            const image = new Image();
            image.src = `${address}/image.png`;
            const script = document.createElement("script");
            script.src = `${address}/script.js`;
            document.head.append(image, script);
            fetch(`${address}/data`).catch(() => {});
        })""",
        address,
    )
    assert refused == ["connect-src", "img-src", "script-src"]
    assert asked == []

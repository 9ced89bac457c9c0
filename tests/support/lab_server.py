"""A private JupyterLab on loopback and the Chromium that looks at it, for tests and benchmarks."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
from lab_page import PATIENCE_MS, ROOT

FLAGS = (
    "--no-sandbox",  # only needed when running as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
FOLDERS = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
}


def write_notebook(path, *texts):
    """Write a notebook of code cells."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in texts]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


@contextmanager
def serve(home, notebooks, theme="JupyterLab Light"):
    """Serve copies of our notebooks and `notebooks` (cells by name); yields address and token."""
    folder = home / "work" / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    shutil.copytree(ROOT / "data", home / "work" / "data")
    for name, texts in notebooks.items():
        write_notebook(folder / f"{name}.ipynb", *texts)
    settings = home / "settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    quiet = '{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}'
    (settings / "notification.jupyterlab-settings").write_text(quiet)
    (settings / "themes.jupyterlab-settings").write_text(f'{{"theme": "{theme}"}}')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={home / 'work'}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env=os.environ | {name: str(home / folder) for name, folder in FOLDERS.items()},
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=2).close()  # noqa: S310 - our own
                break
            except OSError:
                assert server.poll() is None, (home / "server.log").read_text()
                assert time.monotonic() < deadline, (home / "server.log").read_text()
                time.sleep(0.25)
        yield address, token
    finally:
        server.terminate()  # once: the server then stops its kernels
        server.wait(30)


def open_notebook(page, lab, name):
    """Open a notebook and wait until its kernel answers."""
    address, token = lab
    page.goto(f"{address}/lab/tree/notebooks/{name}.ipynb?reset&token={token}")
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE_MS)
    page.evaluate("""async () => {
        const panel = window.jupyterapp.shell.currentWidget;
        await panel.context.ready;
        await panel.sessionContext.ready;
        await panel.sessionContext.session.kernel.info;
    }""")


def run_all(page):
    """Run all cells, with the side bar closed."""
    page.evaluate("() => void window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")


def until_run(page):
    """Wait until all cells have run."""
    page.wait_for_function(
        """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
            .every(cell => cell.type !== 'code' || cell.executionCount)""",
        timeout=3 * PATIENCE_MS,  # of many cells, next to other tests
    )

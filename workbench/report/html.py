"""An executed notebook as one HTML text that needs no network.

The page carries the chart library once, compressed. Its policy forbids every other load, and ``fetched_urls`` finds
attempts; scripts run only with a number that a notebook's outputs cannot know.
"""

import base64
import gzip
import re
import secrets
from html.parser import HTMLParser
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from plotly.offline import get_plotlyjs

_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_LOADING = frozenset({"src", "srcset", "href", "data", "poster", "background"})
_INLINE = ("data:", "blob:", "#")
_CSS_URL = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""", re.IGNORECASE)
_PLOTLY_MIME = "application/vnd.plotly.v1+json"


def export(
    notebook: nbformat.NotebookNode, templates: Path, title: str, facts: tuple[tuple[str, str], ...] = ()
) -> str:
    """Write an executed notebook as HTML by ``report/index.html.j2`` of `templates`, with `facts` at its foot."""
    notebook.metadata["title"] = title
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="report",
        extra_template_basedirs=[str(templates)],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    nonce = secrets.token_urlsafe(16)
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    library = ""
    if any(_PLOTLY_MIME in data for data in shown):  # the chart library, compressed and as base64
        library = base64.b64encode(gzip.compress(get_plotlyjs().encode(), compresslevel=6, mtime=0)).decode("ascii")
    extra = {"report": {"policy": _POLICY.format(nonce=nonce), "nonce": nonce, "facts": facts, "library": library}}
    html, _ = exporter.from_notebook_node(notebook, resources=extra)
    return str(html)


def fetched_urls(html: str) -> list[str]:
    """List everything a browser would load from elsewhere; empty for a self-contained page."""
    parser = _Fetched()
    parser.feed(html)
    return parser.urls


class _Fetched(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":  # no policy forbids navigating elsewhere
            self.urls.append(given.get("content", ""))
        for name, value in attrs:
            if tag != "a" and name in _LOADING and value and not value.startswith(_INLINE):
                self.urls.append(value)
            if name == "style" and value:
                self._css(value)

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._css(data)

    def _css(self, text: str) -> None:
        self.urls += [url for url in _CSS_URL.findall(text) if not url.startswith(_INLINE)]

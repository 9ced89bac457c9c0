"""The steps of the papers' report; apart from the others', which need not wait for the papers' simulators."""

from workbench.errors import WorkbenchError
from workbench.papers import PAPERS, Paper, find_paper
from workbench.views import paper_cards
from workbench.views.cards import show

ALL, ANY = "all", "any"  # papers; queries of them


def ask_papers(paper: str = ALL, query: str = ANY) -> tuple[Paper, ...]:
    """Find the papers whose figures to show: the named one or all, and with a query those that have it."""
    chosen = tuple(PAPERS.values()) if paper == ALL else (find_paper(paper),)
    known = tuple(dict.fromkeys(name for one in chosen for name in one.inputs))
    if query not in {ANY, *known}:
        raise WorkbenchError(
            f"No figure can be made for the query {query!r}; use one of {', '.join(known)}, or {ANY}.",
            settings=("query",),
        )
    return tuple(one for one in chosen if query == ANY or query in one.inputs)


def show_papers(paper: str = ALL, query: str = ANY) -> None:
    """Show the figures of a paper, or of all, next to ours; see `ask_papers`."""
    for one in ask_papers(paper, query):
        show(paper_cards.cards(one, None if query == ANY else query))

"""The parts of pages, made from templates."""

import re
from types import SimpleNamespace

from workbench.advice import Advice
from workbench.views.parts import part, read


def test_a_command_among_advice_stands_out_whole_to_be_copied():
    advised = Advice("Begin with more slots. Run", "workbench report x 'a <b>'", Advice("Or wait."))
    said = part("cautions", {"It fell behind.": advised}, 4)
    assert "Run: <code>workbench report x &#x27;a &lt;b&gt;&#x27;</code><br>Or wait.</strong>" in said
    alone = part("cautions", {"Why.": Advice("", "workbench plan study.yaml")}, 4)
    assert alone.count("<code>workbench plan study.yaml</code>") == 1


def test_blanks_of_a_file_name_are_kept_where_its_command_is_copied():
    (rule,) = re.findall(r"\.workbench-cares code \{(.*?)\}", read("cards.css"), re.DOTALL)
    assert "white-space: pre-wrap" in rule


def test_words_that_look_like_a_command_are_words():
    """A user's names are among them; what is a command is said where the advice is made."""
    assert "<code>" not in part("cautions", {"Why.": Advice("The query is named q: workbench plan study.yaml")}, 4)


def test_whatever_a_part_is_given_is_escaped():
    nasty = '<script>"&'
    figure = SimpleNamespace(said=nasty, status=nasty, how=nasty)
    tile = SimpleNamespace(name=nasty, value=nasty, notes=(nasty,), kind="safe")
    said = SimpleNamespace(facts=((nasty, nasty),), share=0.5)
    for made in (
        part("status", nasty),
        part("chart", nasty),
        part("tabs", nasty, {nasty: {nasty: nasty}}),
        part("paper", figure),
        part("tiles", [(tile, nasty)]),
        part("standing", nasty, said),
        part("cautions", {nasty: Advice(nasty, nasty, Advice(nasty))}, 4),
    ):
        assert "&lt;script&gt;&quot;&amp;" in made
        assert "<script>" not in made

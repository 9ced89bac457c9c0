"""What the first screens of all reports are made of."""

from workbench.views.first_screen import cares_html


def test_a_command_among_advice_stands_out_whole_to_be_copied():
    said = cares_html({"It fell behind.": "Begin with more slots. Run: workbench report x 'a <b>'\nOr wait."})
    assert "Run: <code>workbench report x &#x27;a &lt;b&gt;&#x27;</code><br>Or wait.</strong>" in said
    assert cares_html({"Why.": "workbench plan study.yaml"}).count("<code>workbench plan study.yaml</code>") == 1
    assert "<code>" not in cares_html({"Why.": "Ask the workbench again."})

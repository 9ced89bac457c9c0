"""How panels are laid out: two sides where there is room, one below the other where not, in the page's own colours.

The breakpoints are those of the panel, not of the window: a notebook's output is as wide as its page leaves it.
"""

import ipywidgets

from workbench.views import theme

PANEL, SIDES, CONTROLS, ROW, PAIR, LOOP = (
    f"workbench-{name}" for name in ("panel", "sides", "controls", "row", "pair", "loop")
)

_STYLE = f"""<style>
.{PANEL}.widget-box {{container-type: inline-size; overflow: visible;}}
.{SIDES}.widget-box, .{PAIR}.widget-box, .{LOOP}.widget-box {{display: grid;
  grid-template-columns: 20rem minmax(0, 1fr); gap: 0 1.4rem;
  align-items: start; overflow: visible;}}
.{PAIR}.widget-box, .{LOOP}.widget-box {{grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);}}
.{ROW}.widget-box {{display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0 1rem;
  align-items: end;}}
.{ROW} > *, .{SIDES} > *, .{PAIR} > *, .{LOOP} > * {{min-width: 0;}}
@container (max-width: 900px) {{.{LOOP}.widget-box {{grid-template-columns: minmax(0, 1fr);}}}}
@container (max-width: 820px) {{.{SIDES}.widget-box {{grid-template-columns: minmax(0, 1fr);}}}}
@container (max-width: 620px) {{.{PAIR}.widget-box {{grid-template-columns: minmax(0, 1fr);}}}}
.{CONTROLS}.widget-box, .{CONTROLS} .widget-box {{overflow: visible;}}
.{CONTROLS} .widget-inline-hbox {{width: auto !important; max-width: none !important; height: auto;
  margin: 0 4px 3px; flex-wrap: wrap;}}
.{CONTROLS} .widget-inline-hbox > .widget-label {{width: 100% !important; height: 1.3rem; line-height: 1.3rem;
  margin: 0; text-align: left;}}
.{CONTROLS} .widget-inline-hbox > :not(.widget-label, .widget-readout) {{flex: 1 1 8rem; min-width: 0;}}
.{CONTROLS} .widget-readout {{max-width: none; text-align: right;}}
.{CONTROLS} .jupyter-widget-Collapse-header, .{PANEL} .jupyter-widget-Collapse-header {{padding: 3px 8px;}}
.{PANEL} .widget-tab > .widget-tab-contents {{padding: 0; border: none;}}
.{PANEL} .workbench-state {{line-height: 1.4;}}
.{PANEL} .jupyter-widget-Collapse-contents {{padding: 4px 8px;}}
.workbench-tiles {{display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: 0.5rem;
  font: 13px/1.35 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif;
  color: var(--jp-content-font-color1, #1f1f1f);}}
.workbench-tile {{border: 1px solid var(--jp-border-color1, #bbb); border-left: 5px solid #6b6b6b;
  padding: 0.3rem 0.6rem; min-height: 6.2rem; box-sizing: border-box;
  background: var(--jp-layout-color1, #fff); overflow-wrap: anywhere;}}
.workbench-tile b {{display: block; font-size: 1.55rem; line-height: 1.25; font-weight: 600;
  font-variant-numeric: tabular-nums;}}
.workbench-tile i {{display: block; font-style: normal; font-weight: 600; margin-top: 0.1rem;}}
.workbench-tile.safe {{border-left-color: #006b4e;}}
.workbench-tile.risky {{border-left-color: #c77700;}}
.workbench-tile.short {{background: #b3261e; border-color: #b3261e; color: #fff;}}
{theme.DARK}
</style>"""


def styled(*parts: ipywidgets.Widget) -> tuple[ipywidgets.Widget, ...]:
    """Give a panel's parts with their style."""
    return (*parts, ipywidgets.HTML(_STYLE, layout={"display": "none"}))


def sides(controls: ipywidgets.Widget, results: ipywidgets.Widget) -> ipywidgets.Box:
    """Put controls to the left of what they change, or above it on a narrow page."""
    return _grid(SIDES, controls.add_class(CONTROLS), results)


def row(*controls: ipywidgets.Widget) -> ipywidgets.Box:
    """Put controls next to each other, as many as there is room for."""
    return _grid(ROW, *controls).add_class(CONTROLS)


def pair(*parts: ipywidgets.Widget) -> ipywidgets.Box:
    """Put two things side by side."""
    return _grid(PAIR, *parts)


def loop(*figures: ipywidgets.Widget) -> ipywidgets.Box:
    """Put figures two by two where each has room for two panels, else one below the other."""
    return _grid(LOOP, *figures)


def folded(title: str, *parts: ipywidgets.Widget) -> ipywidgets.Accordion:
    """Put less used parts behind their title."""
    return ipywidgets.Accordion([ipywidgets.VBox(parts)], titles=(title,), selected_index=None)


def _grid(name: str, *parts: ipywidgets.Widget) -> ipywidgets.Box:
    return ipywidgets.Box(parts).add_class(name)

"""The look of cards and first screens, as one style sheet; colours follow the page's theme."""

from workbench.views.theme import DARK

_RULES = """
.workbench-card, .workbench-table {--ink: var(--jp-content-font-color1, #1f1f1f);
  --paper: var(--jp-layout-color0, #fff);
  --quiet: var(--jp-content-font-color2, #555); --rule: var(--jp-border-color1, #bbb);
  --accent: var(--jp-content-link-color, #0062a0);}
.workbench-card {font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif;
  color: var(--ink); background: var(--paper); max-width: 75rem; margin: 1.1rem 0 0.2rem;
  padding: 0.1rem 0 0.1rem 0.9rem; border-left: 4px solid #0072b2;}
.workbench-card.health {border-left-color: #d55e00;}
.workbench-card.error {border-left-color: var(--ink);}
.workbench-card.not-yet, .workbench-card.no-data, .workbench-card.no-plan {border-left-color: #6b6b6b;}
.workbench-card h2 {font-size: 1.2rem; line-height: 1.3; margin: 0 0 0.2rem; font-weight: 600; color: inherit;}
.workbench-card p {margin: 0; max-width: 60rem; overflow-wrap: anywhere; color: inherit;}
.workbench-card .kind {font-size: 0.8rem; font-weight: 600; margin-right: 0.5rem; padding: 0.1rem 0.5rem;
  border: 1px solid currentColor; border-radius: 0.7rem; white-space: nowrap; vertical-align: 0.1rem;}
.workbench-card .origin, .workbench-card .verdict {font-weight: 700; padding: 0.1rem 0.5rem; border-radius: 0.3rem;
  white-space: nowrap; color: #fff;}
.workbench-card .origin.measured, .workbench-card .verdict.safe {background: #006b4e;}
.workbench-card .origin.calculated {background: #0062a0;}
.workbench-card .origin.recorded {background: #6d4a7e;}
.workbench-card .origin.observed {background: #1f5f8b;}
.workbench-card .verdict.risky {background: #8a5200;}
.workbench-card .origin.simulated, .workbench-card .verdict.unsure {background: #b3261e;}
.workbench-card .workbench-origin {margin: 0.5rem 0;}
.workbench-front {overflow-x: auto;}
.workbench-front.workbench-front table {border-collapse: collapse; margin: 0.6rem 0; font-size: 15px; border: none;}
.workbench-front.workbench-front th, .workbench-front.workbench-front td {text-align: left;
  padding: 0.3rem 1rem 0.3rem 0; border: none; border-bottom: 1px solid var(--rule); color: var(--ink);
  background: var(--paper); white-space: normal;}
.workbench-front.workbench-front td.number, .workbench-front.workbench-front th.number {text-align: right;}
.workbench-front.workbench-front tr.chosen td {font-weight: 650;}
.workbench-front caption {text-align: left; color: var(--quiet); caption-side: top; white-space: normal;}
.workbench-beside {display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start;}
.workbench-beside > * {flex: 0 1 auto; min-width: 0;}
.workbench-card > .workbench-front table {min-width: 60%;}
.workbench-beside .workbench-front.workbench-front table, .workbench-card > .workbench-front caption
  {font-size: 13.5px;}
.workbench-beside .workbench-front.workbench-front th, .workbench-beside .workbench-front.workbench-front td
  {padding: 0.12rem 0.8rem 0.12rem 0; white-space: nowrap;}
.workbench-cares {margin: 0.6rem 0 0.2rem; padding-left: 1.2rem; max-width: 60rem; overflow-wrap: anywhere;}
.workbench-cares.workbench-cares code {display: inline-block; margin: 0.15rem 0; padding: 0.1rem 0.4rem;
  font: 12px/1.45 ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', monospace; border: 1px solid var(--rule, #999);
  color: inherit; background: none; user-select: all; white-space: pre-wrap;}
.workbench-tabs {display: flex; flex-wrap: wrap; margin-top: 0.5rem; gap: 0 0.3rem;}
.workbench-tabs input {position: absolute; opacity: 0; pointer-events: none;}
.workbench-tabs label {padding: 0.2rem 0.8rem; border: 1px solid var(--rule); border-bottom: none;
  border-radius: 0.3rem 0.3rem 0 0; cursor: pointer; color: var(--accent);}
.workbench-tabs input:checked + label {font-weight: 650; color: var(--ink); box-shadow: inset 0 3px var(--accent);}
.workbench-tabs input:focus-visible + label {outline: 2px solid var(--accent);}
.workbench-tabs .pane {order: 1; flex: 0 0 100%; min-width: 0; box-sizing: border-box;
  border-top: 1px solid var(--rule); padding-top: 0.4rem; display: flex; flex-wrap: wrap; gap: 0.6rem 1.5rem;}
.workbench-tabs input:not(:checked) + label + .pane {display: none;}
.workbench-tabs .pane > div {flex: 1 1 22rem; min-width: 0;}
.workbench-card pre.workbench-copy {font: 12px/1.45 ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', monospace;
  margin: 0.2rem 0; padding: 0.5rem 0.6rem; max-height: 9.5rem; overflow: auto; border: 1px solid var(--rule);
  color: var(--ink); background: var(--paper); white-space: pre-wrap; word-break: normal;
  overflow-wrap: break-word; user-select: all;}
@media print {
  .workbench-tabs.workbench-tabs, .workbench-tabs.workbench-tabs .pane {display: block !important;}
  .workbench-card pre.workbench-copy {max-height: none;}
}
.workbench-table {font: 13.5px/1.4 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif;
  color: var(--ink); background: var(--paper); margin: 0.3rem 0 0 0.9rem; overflow-x: auto;}
.workbench-table summary, .workbench-table a {cursor: pointer; color: var(--accent);}
.workbench-table.workbench-table table {border-collapse: collapse; margin: 0.4rem 0; font-variant-numeric: tabular-nums;
  font-size: inherit; border: none; color: inherit;}
.workbench-table caption {text-align: left; color: var(--quiet); padding: 0.2rem 0; caption-side: top;
  white-space: nowrap;}
.workbench-table caption.long {white-space: normal; min-width: 24rem;}
.workbench-table.workbench-table table th, .workbench-table.workbench-table table td {padding: 0.2rem 0.45rem;
  border: none; border-bottom: 1px solid var(--rule); color: inherit;
  text-align: left; vertical-align: bottom; background: var(--paper); max-width: 34rem; white-space: normal;}
.workbench-table thead th {border-bottom: 1px solid var(--quiet);}
.workbench-table .unit {display: block; font-weight: 400; color: var(--quiet);}
.workbench-table.workbench-table table th.number, .workbench-table.workbench-table table td.number {text-align: right;}
.workbench-table.workbench-table table td.number, .workbench-table.workbench-table table td:first-child
  {white-space: nowrap;}
.workbench-table.workbench-table table td.long {min-width: 14rem;}
"""

STYLE = f"<style>{_RULES}{DARK}</style>"

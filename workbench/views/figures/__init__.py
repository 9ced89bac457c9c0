"""Figures in two pure steps: a data function, or a record, determines the content, a drawing function shows it.

A drawing function returns a plain plotly figure whose traces keep their ``uid`` and order, so that a live figure can
be updated in place; ``layout.meta`` holds the finding and a text alternative.
"""

from workbench.views.figures.batch_times import batch_times, draw_batch_times, draw_head_room, outcome
from workbench.views.figures.capacity import Curves, capacity, draw_capacity, draw_what_if
from workbench.views.figures.cost_vectors import COST_NAMES, cost_vectors, cost_words, draw_cost_vectors, draw_pareto
from workbench.views.figures.dataflow_graph import draw_dataflow_graph, observed_graph
from workbench.views.figures.elastic import (
    best_paradigm,
    draw_latency_cores,
    draw_paradigms,
    draw_shard_balance,
    latency_cores,
    paradigms,
    shard_balance,
)
from workbench.views.figures.exploration import convergence, draw_acquisition, draw_convergence, draw_model_forms
from workbench.views.figures.placement import (
    PlacementMap,
    draw_placement_map,
    draw_pruning,
    draw_spreads,
    placement_map,
    pruning,
    spreads,
)
from workbench.views.figures.probes import Probes, draw_bracket, draw_probes
from workbench.views.figures.reproduced import draw_reproduced
from workbench.views.figures.search_tree import choice_words, draw_search_tree, search_tree
from workbench.views.figures.slot_layout import (
    busiest_operator,
    draw_configured,
    draw_operators,
    draw_slot_shares,
    draw_stage_layout,
    operators,
    slot_shares,
    stage_layout,
)
from workbench.views.figures.timeline import POINTS, draw_overlaid, draw_policies, draw_timeline, same_axes, timeline
from workbench.views.figures.trade_offs import (
    RiskPoint,
    cost_risk,
    draw_cost_risk,
    draw_trigger_intervals,
    trigger_intervals,
)

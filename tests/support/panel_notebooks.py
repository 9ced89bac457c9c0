"""Cells of notebooks that show one panel each, for browser tests and benchmarks."""

PANELS = {
    "panel_what_if": (
        """
from pathlib import Path
from tempfile import mkdtemp

from workbench.capacity.planning import read_instances
from workbench.journal import Journal
from workbench.study import Study, run_study
from workbench.views.widgets import WhatIf

study = Study("nexmark:q11", (1e6,), (8, 16, 24), (512, 1024), testbed="fluid", slot_cpus=1.0, most_runs=5)
planned = run_study(study, Journal(Path(mkdtemp()) / "journal.jsonl"))
WhatIf(planned, read_instances(Path("../data/instances.csv")))
""",
    ),
    "panel_loop": (
        """
from pathlib import Path
from tempfile import mkdtemp

from workbench.journal import Journal
from workbench.study import Study, planning
from workbench.views.widgets import LivePanel

study = Study("nexmark:q11", (1e6,), (4, 8, 12), (512, 1024), testbed="fluid", slot_cpus=1.0, most_runs=7)
panel = LivePanel(planning(study, Journal(Path(mkdtemp()) / "journal.jsonl")))
panel.begin(wait=True)
panel
""",
    ),
    "panel_caps": (
        """
from workbench.placement import PlacementProblem
from workbench.views.widgets import CapsExplorer

names = ("source", "map", "window", "sink")
problem = PlacementProblem(
    dict(zip(names, (2, 3, 4, 1))), list(zip(names, names[1:])), 3, 4,
    dict(zip(names, (0.1, 0.3, 0.8, 0.05))), dict(zip(names, (0, 0, 40e6, 0))), dict(zip(names, (30e6, 10e6, 1e6, 0))),
)
CapsExplorer(problem)
""",
    ),
    "panel_replay": (
        """
from dataclasses import replace

from workbench.simulation import RateTrace
from workbench.study import replay_start, simulated_start
from workbench.views.widgets import ReplayPlayer

day = RateTrace.diurnal(200_000, 1_200_000, duration_s=7200, period_s=7200, peak_at_s=3600)
lines = replay_start(simulated_start("q11", 20, 2048.0), day, ("static", "ds2", "flink")).timelines
ReplayPlayer({name: replace(line, batch_s=5.0) for name, line in lines.items()})
""",
    ),
}

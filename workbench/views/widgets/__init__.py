"""Live panels for notebooks: long work, what-if sliders, the placement search, replays.

All work from the keyboard, and an error inside a callback shows as a card in its panel.
"""

from workbench.views.widgets.caps_explorer import CapsExplorer
from workbench.views.widgets.later import Later
from workbench.views.widgets.live_panel import LivePanel
from workbench.views.widgets.paper_panel import PaperPanel
from workbench.views.widgets.replay_player import ReplayPlayer
from workbench.views.widgets.what_if_panel import WhatIf

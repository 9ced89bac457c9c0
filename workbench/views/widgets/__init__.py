"""Live panels for notebooks, which can be used by keyboard; an error inside a callback shows as a card in its panel."""

from workbench.views.widgets.caps_explorer import CapsExplorer
from workbench.views.widgets.live_panel import LivePanel
from workbench.views.widgets.panel import Deferred
from workbench.views.widgets.paper_panel import PaperPanel
from workbench.views.widgets.replay_player import ReplayPlayer
from workbench.views.widgets.what_if_panel import WhatIf

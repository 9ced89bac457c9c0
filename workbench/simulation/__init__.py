"""A fluid model of a dataflow under load: what a deployment of any size would do, and its steady state in closed form.

``QueryModel`` says what a query costs, ``Deployment`` puts it on slots, ``advance`` lets time pass, ``steady_state``
solves what is sustained; ``preset`` gives StreamBed's five queries, ``RateTrace`` the load over time,
``KeyTrace`` the popularity of keys, ``StateResponse`` measured state.
"""

from workbench.simulation.capsys import CAPSYS_QUERIES, ProfiledQuery, capsys_query
from workbench.simulation.deployment import Cluster, Deployment, Worker, steady_state
from workbench.simulation.engine import State, Step, advance, carry, speed_factor, stream, whole_step
from workbench.simulation.keys import KeyTrace, task_shares
from workbench.simulation.model import OperatorModel, QueryModel, StateModel, StateResponse, WarmUp
from workbench.simulation.presets import PRESETS, SIMULATED, preset, short_name, simulated_query
from workbench.simulation.trace import RateTrace

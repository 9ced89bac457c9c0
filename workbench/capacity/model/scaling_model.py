"""The workbench's own capacity model, and the choice of a model by the name of its form."""

from workbench.arrays import Floats
from workbench.capacity.model.forms import TRANSFORMS
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.least_squares import CapacityModel
from workbench.capacity.model.model import Model
from workbench.errors import WorkbenchError

SCALING = "scaling"

FORMS = (*TRANSFORMS, SCALING)
"""Names that `model_of_form` knows."""


class ScalingModel(Model):
    """Capacity by the `ScalingLaw`; of micro-batches, by the parts of a batch where they explain the runs.

    A prediction is the median.

    Parameters
    ----------
    stateful
        Whether the query has a stateful operator; None: unknown. There the records of one key meet on one task, so
        capacity may level off, and the interval allows for it. It matters where slots are tasks; the published curves,
        most of them of stateful queries, allow for it elsewhere.
    growth
        What more slots are, where you know more than the runs say: ``"workers"``, ``"cores"`` of one machine, or
        ``"tasks"`` of a pipelined engine. None, as a rule: the law decides from what is known of the query, see
        `workbench.capacity.model.growth`.

    Examples
    --------
    >>> X = [[512, 2], [512, 8], [2048, 2], [2048, 8]]
    >>> model = ScalingModel().fit(X, [2e5, 8e5, 2e5, 8e5])
    >>> low, high = model.interval([[1024, 40]])
    >>> bool(low[0] < 4e6 < high[0])
    True
    """

    form = SCALING
    _by_law = True

    def __init__(self, *, stateful: bool | None = None, growth: Growth | None = None) -> None:
        self.stateful = stateful
        self.growth = growth

    def _fit(self, points: Floats, rates: Floats) -> None:  # noqa: ARG002  the law is all there is to fit
        if self.law_ is None:
            raise WorkbenchError(
                "The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."
            )

    def _predict(self, points: Floats) -> Floats:
        return self._law(points).quantile(points, 0.5)

    def _growth(self) -> float:
        return 0.0 if self.law_ is None else self.law_.expected_exponents[1]


def model_of_form(form: str, *, stateful: bool | None = None, growth: Growth | None = None) -> Model:
    """Return an unfitted model of `form`, one of `FORMS`.

    Raises
    ------
    WorkbenchError
        When the form is unknown.
    """
    if form not in FORMS:
        raise WorkbenchError(f"The form of a capacity model is {form!r}; use one of {', '.join(FORMS)}.")
    if form == SCALING:
        return ScalingModel(stateful=stateful, growth=growth)
    return CapacityModel(form, stateful=stateful, growth=growth)

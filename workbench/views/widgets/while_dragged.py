"""Sliders that answer while they are dragged, not only when they are let go.

ipywidgets' own ``continuous_update`` would do more: the page then rounds every value that is set or typed to the
slider's step, and sends that back, so that neither a planned rate nor a price of the list would stay what it is.
Messages do not pile up: ipywidgets holds a slider's next one back until the kernel is done with the last.
"""

from collections.abc import Iterable

import anywidget
import ipywidgets
import traitlets


class WhileDragged(anywidget.AnyWidget):
    """Put into a panel: those of its controls that are sliders are continuous from when one is grabbed until let go."""

    sliders = traitlets.List(traitlets.Instance(ipywidgets.Widget)).tag(sync=True, **ipywidgets.widget_serialization)

    # The setting is written past `set`, which would send it to the kernel with the next value.
    _esm = """
    async function render({ model, el }) {
      const ids = model.get("sliders").map(name => name.replace("IPY_MODEL_", ""));
      const sliders = await Promise.all(ids.map(id => model.widget_manager.get_model(id)));
      const grab = async ({ target }) => {
        for (const slider of sliders) {
          const views = await Promise.all(Object.values(slider.views));
          slider.attributes.continuous_update = views.some(view => view.el.contains(target));
        }
      };
      const release = () => { for (const slider of sliders) slider.attributes.continuous_update = false; };
      el.style.display = "none";
      addEventListener("pointerdown", grab, true);
      addEventListener("pointerup", release, true);
      addEventListener("pointercancel", release, true);
      return () => {
        removeEventListener("pointerdown", grab, true);
        removeEventListener("pointerup", release, true);
        removeEventListener("pointercancel", release, true);
      };
    }
    export default { render };
    """

    def __init__(self, controls: Iterable[ipywidgets.Widget]) -> None:
        super().__init__(sliders=[one for one in controls if one.has_trait("continuous_update")])

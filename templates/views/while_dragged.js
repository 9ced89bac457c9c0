// The setting is written past `set`, which would send it to the kernel with the next value.
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

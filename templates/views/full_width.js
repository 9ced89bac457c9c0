function render({ el }) {
  const drawn = new WeakSet();
  const fit = () => requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
  const look = () => {
    const charts = [...el.parentElement.querySelectorAll(".js-plotly-plot")];
    const fresh = charts.filter(chart => !drawn.has(chart) && chart.querySelector(".main-svg"));
    fresh.forEach(chart => { drawn.add(chart); width.observe(chart.parentElement); });
    if (fresh.length) fit();
  };
  // A chart behind a tab gets its width when the tab is opened.
  const additions = new MutationObserver(look);
  let panel = null;
  const width = new ResizeObserver(() => {
    if (!panel && el.parentElement) {
      panel = el.parentElement;
      additions.observe(panel, { childList: true, subtree: true });
      look();
    }
    fit();
  });
  el.style.width = "100%";
  width.observe(el);
  return () => { width.disconnect(); additions.disconnect(); };
}
export default { render };

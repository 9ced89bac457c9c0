function render({ model, el }) {
  const log = document.createElement("div");
  const shown = document.createElement("div");
  log.className = "workbench-log";
  log.tabIndex = 0;
  log.setAttribute("role", "log");
  log.setAttribute("aria-label", "Log of the work");
  log.append(shown);
  el.append(log);
  const show = () => {
    const lines = model.get("lines");
    const last = shown.lastElementChild;
    const place = last?.getBoundingClientRect().top;
    while ([...shown.children].some((line, number) => line.textContent !== lines[number]))
      shown.firstElementChild.remove();
    for (const line of lines.slice(shown.childElementCount)) {
      const added = document.createElement("div");
      added.textContent = line;
      shown.append(added);
    }
    const scrolledUp = log.scrollTop < -1;  // in a reversed column the end is at 0
    if (scrolledUp && last?.isConnected) log.scrollTop += last.getBoundingClientRect().top - place;
  };
  show();
  model.on("change:lines", show);
  return () => model.off("change:lines", show);
}
export default { render };

"""The log of long work: a page is sent all lines, and adds those that are new, so that nobody loses their place."""

import anywidget
import traitlets


class LiveLog(anywidget.AnyWidget):
    """Lines as they come. It stays at its end unless its reader has scrolled up; new lines alone are read out."""

    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)

    _css = """
    .workbench-log {font: 12.5px/1.45 ui-monospace, 'Liberation Mono', monospace;
      color: var(--jp-content-font-color1, #1f1f1f); background: var(--jp-layout-color2, #f6f6f6);
      height: 9.5rem; overflow-y: auto; overflow-anchor: none; padding: 0.3rem 0.6rem; margin: 0.2rem 0;
      white-space: pre-wrap; display: flex; flex-direction: column-reverse;}
    """
    _esm = """
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
    """

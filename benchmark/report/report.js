"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = (root) => JSON.parse(root.querySelector("script.data").textContent);
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  document.documentElement.classList.add("script");

  /* Theme: the system's until the button says otherwise. */
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  /* Sorting: ascending, descending, as it was. Cells without a number come last either way. */
  const sortKey = (text) => {
    const record = text.match(/^(\d+)\/\d+\/(\d+)$/);
    if (record) return record[1] - record[2];
    const number = text.match(/^[+\-−]?\d+(\.\d+)?/);
    return number ? Number(number[0].replace("−", "-")) : NaN;
  };
  const compareBy = (column, direction) => {
    const text = (row) => row.cells[column].textContent.trim();
    return (a, b) => {
      const [x, y] = [sortKey(text(a)), sortKey(text(b))];
      if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
      return direction * (Number.isNaN(x) ? text(a).localeCompare(text(b), "en") : x - y);
    };
  };
  const sortable = (table) => {
    const [body] = table.tBodies;
    const heads = [...table.tHead.rows[0].cells];
    const before = [...body.rows];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        const rows = table.classList.contains("refilled") ? [...body.rows] : [...before];
        if (next !== "none") rows.sort(compareBy(column, next === "ascending" ? 1 : -1));
        body.replaceChildren(...rows);
      });
    });
  };

  /* LaTeX: to the clipboard, or shown and selected where that is not allowed. */
  const copyable = (button) => {
    const box = button.parentElement.querySelector("details");
    const source = box.querySelector("pre");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        box.open = true;
        getSelection().selectAllChildren(source);
        source.focus();
        button.textContent = "Selected below: copy it";
      }
      setTimeout(() => (button.textContent = "Copy as LaTeX"), 2500);
    });
  };

  /* Risk–coverage plots. */
  const valuesAt = (line, step) =>
    line.points
      ? Object.entries(line.points[step] || {})
      : line.curves.map((curve, index) => [line.seeds[index], curve[step]]);
  const stepsOf = (line, first, last) =>
    (line.points ? Object.keys(line.points).map(Number) : line.curves[0].map((_, step) => step)).filter(
      (step) => step >= first && step <= last,
    );
  const meanOf = (pairs) => pairs.reduce((sum, [, value]) => sum + value, 0) / pairs.length;
  const describe = (line, step, places) => {
    const pairs = valuesAt(line, step);
    const mean = meanOf(pairs);
    const std = Math.sqrt(meanOf(pairs.map(([seed, value]) => [seed, (value - mean) ** 2])));
    const named = pairs.filter(([seed]) => seed !== "").map(([seed, value]) => `${seed}: ${value.toFixed(2)}`);
    return [
      make("strong", {}, line.name),
      make("span", {}, `${places ? places[step] : `coverage ${step / 2} %`}: ${mean.toFixed(2)}${pairs.length > 1 ? ` ± ${std.toFixed(2)}` : ""}`),
      ...(named.length ? [make("small", {}, `by seed ${named.join(", ")}`)] : []),
    ];
  };

  /* A plot has data of its own, or each of its views has, whose lines name their entry of the legend. */
  const plot = (root) => {
    const hidden = new Set();
    const groups = (index) => all(`.lines > [data-line="${index}"]`, root);
    const buttons = all(".legend button", root);
    const highlight = (index) => {
      all(".lines", root).forEach((svg) => svg.classList.toggle("looking", index !== null));
      all(".lines > g", root).forEach((group) => group.classList.toggle("at", group.dataset.line === String(index)));
    };
    const show = (index, visible) => {
      hidden[visible ? "delete" : "add"](index);
      groups(index).forEach((group) => group.classList.toggle("off", !visible));
      buttons[index].setAttribute("aria-pressed", String(visible));
      every.textContent = hidden.size ? "Show all" : "Hide all";
    };
    buttons.forEach((button, index) => {
      button.addEventListener("click", () => (show(index, hidden.has(index)), highlight(null)));
      button.addEventListener("pointerenter", () => highlight(hidden.has(index) ? null : index));
      button.addEventListener("pointerleave", () => highlight(null));
    });
    const every = make("button", { type: "button", className: "every" }, "Hide all");
    every.addEventListener("click", () => {
      const visible = hidden.size > 0;
      buttons.forEach((_, index) => show(index, visible));
    });
    root.querySelector(".legend").append(make("li", {}, every));

    const zooms = all(".zoom button", root);
    const zoom = (name) => {
      zooms.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.view === name)));
      all(".view", root).forEach((view) => (view.hidden = view.dataset.view !== name));
    };
    zooms.forEach((button) => button.addEventListener("click", () => zoom(button.dataset.view)));
    if (zooms.length) zoom(zooms[0].dataset.view);
    all(".view[data-range]", root).forEach((view) => {
      hover(view, data(view.querySelector("script.data") ? view : root), hidden, highlight);
    });
  };

  const hover = (view, { lines, places }, hidden, highlight) => {
    const entryOf = (index) => lines[index].entry ?? index;
    const [svg, tip] = [view.querySelector("svg"), view.querySelector(".tip")];
    const [cross, spot] = [view.querySelector(".cross"), view.querySelector(".spot")];
    const [first, last, top, low] = view.dataset.range.split(" ").map(Number);
    const [left, above, width, height] = view.dataset.frame.split(" ").map(Number);
    const x = (step) => left + ((step - first) / (last - first)) * width;
    const y = (risk) => above + ((top - risk) / (top - low)) * height;
    const steps = lines.map((line) => stepsOf(line, first, last));
    const usable = () => lines.map((_, index) => index).filter((index) => !hidden.has(entryOf(index)) && steps[index].length);
    const nearestStep = (index, wanted) =>
      steps[index].reduce((best, step) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best));
    let at = null;

    const hide = () => {
      at = null;
      tip.hidden = true;
      [cross, spot].forEach((mark) => mark.setAttribute("visibility", "hidden"));
      highlight(null);
    };
    const look = (index, step) => {
      at = { index, step };
      const [px, py] = [x(step), Math.max(above, y(meanOf(valuesAt(lines[index], step))))];
      const place = { x1: px, x2: px, y1: above, y2: above + height, visibility: "visible" };
      Object.entries(place).forEach(([key, value]) => cross.setAttribute(key, value));
      Object.entries({ cx: px, cy: py, visibility: "visible" }).forEach(([key, value]) => spot.setAttribute(key, value));
      highlight(entryOf(index));
      tip.replaceChildren(...describe(lines[index], step, places));
      tip.hidden = false;
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const right = px * scale + 20;
      const fits = right + tip.offsetWidth <= view.clientWidth;
      tip.style.left = `${Math.max(0, fits ? right : right - 40 - tip.offsetWidth)}px`;
      tip.style.top = `${Math.max(0, py * scale - tip.offsetHeight - 10)}px`;
    };
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      const [px, py] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
      const wanted = first + ((px - left) / width) * (last - first);
      const found = usable()
        .map((index) => {
          const step = nearestStep(index, wanted);
          return { index, step, far: Math.hypot(x(step) - px, y(meanOf(valuesAt(lines[index], step))) - py) };
        })
        .sort((a, b) => a.far - b.far)[0];
      if (found) look(found.index, found.step);
    };
    const move = (event) => {
      const order = usable();
      if (!order.length || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Escape"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Escape") return void hide();
      let { index, step } = at || { index: order[0], step: last };
      const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key] || 0;
      const updown = { ArrowUp: -1, ArrowDown: 1 }[event.key] || 0;
      if (updown || !order.includes(index)) index = order[(order.indexOf(index) + updown + order.length) % order.length];
      const place = steps[index].indexOf(nearestStep(index, step)) + sideways;
      look(index, steps[index][Math.max(0, Math.min(place, steps[index].length - 1))]);
    };
    view.tabIndex = 0;
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", "Plot: left and right move along a line, up and down to another line");
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    view.addEventListener("keydown", move);
    view.addEventListener("focus", () => {
      const order = usable();
      if (view.matches(":focus-visible") && order.length) look(order[0], nearestStep(order[0], last));
    });
    view.addEventListener("blur", hide);
  };

  /* Rejection by class: another column in a panel. */
  const selectable = (root) => {
    const { classes } = data(root);
    all(".panel", root).forEach((panel) => {
      const table = panel.querySelector("table");
      const cell = (share) => {
        const bar = make("span", { className: "bar" }, share.toFixed(1));
        bar.style.setProperty("--share", String(share / 100));
        return make("td", {}, bar);
      };
      panel.querySelector("select").addEventListener("change", (event) => {
        const rows = classes[event.target.value].map(([name, ...shares]) =>
          make("tr", {}, make("th", { scope: "row" }, String(name)), ...shares.map(cell)),
        );
        panel.querySelector("h4").textContent = event.target.value;
        table.classList.add("refilled");
        table.tBodies[0].replaceChildren(...rows);
        [...table.tHead.rows[0].cells].forEach((head) => head.setAttribute("aria-sort", "none"));
      });
    });
  };

  const enliven = (root) => {
    all("table.sortable", root).forEach(sortable);
    all("button.copy", root).forEach(copyable);
    all(".plot", root).forEach(plot);
    all(".classes", root).forEach(selectable);
  };
  enliven(document);
  /* A page that follows a run replaces its sections, and says so with this event. */
  document.addEventListener("replaced", (event) => enliven(event.target));
})();

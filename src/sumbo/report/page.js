"use strict";
(function () {
  const nonce = document.currentScript.nonce;
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const say = (text) => (document.getElementById("status").textContent = text);
  const charts = [];
  const PAPER = 640; // pixels: figures are drawn so wide for paper, where they shrink further if they must
  const store = {
    get(area, key) {
      try {
        return window[area].getItem(key);
      } catch (error) {
        return null;
      }
    },
    set(area, key, value) {
      try {
        window[area].setItem(key, value);
      } catch (error) {
        // Storage may be forbidden: the page works without it.
      }
    },
  };

  // --- figures ---

  function inks() {
    const style = getComputedStyle(root);
    const ink = style.getPropertyValue("--ink-2").trim();
    const paper = style.getPropertyValue("--raised").trim();
    return {
      "font.color": ink,
      "hoverlabel.bgcolor": paper,
      "hoverlabel.bordercolor": style.getPropertyValue("--line").trim(),
      "hoverlabel.font.color": style.getPropertyValue("--ink").trim(),
    };
  }

  function paint(chart, layout = {}) {
    const dark = getComputedStyle(root).colorScheme === "dark";
    const numbers = chart.data.flatMap((trace, k) => (trace.texttemplate ? [k] : []));
    if (!numbers.length) return Plotly.relayout(chart, { ...inks(), ...layout });
    const paper = { plot_bgcolor: "rgba(0,0,0,0)" };
    return Plotly.update(chart, { "textfont.color": dark ? "white" : "black" }, { ...inks(), ...paper, ...layout }, numbers);
  }

  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  };

  async function unpack() {
    const packed = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.nonce = nonce;
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    script.remove();
  }

  async function draw() {
    const figures = read("figures");
    await unpack();
    for (const place of document.querySelectorAll("[data-figure]")) {
      const figure = figures[Number(place.dataset.figure)];
      place.replaceChildren();
      await Plotly.newPlot(place, figure.data, figure.layout, config);
      await paint(place);
      charts[Number(place.dataset.figure)] = place;
    }
  }

  function recolour(layout) {
    for (const chart of charts) if (chart) paint(chart, layout);
  }

  // --- slices: what is varied, and where the other parameters stand ---

  function slice(slider, number) {
    const along = Number(document.querySelector(`[data-along="${number}"]`).value);
    const axis = slider.axes[along];
    const others = [];
    let start = 0;
    document.querySelectorAll(`[data-slider="${number}"]`).forEach((knob, k) => {
      const texts = slider.stops[k][0];
      const text = texts[Number(knob.value)];
      knob.setAttribute("aria-valuetext", text);
      knob.parentElement.querySelector("output").textContent = text;
      knob.parentElement.hidden = k === along;
      if (k === along) return;
      start = start * texts.length + Number(knob.value);
      others.push(`${slider.names[k]} = ${text}`);
    });
    const points = axis.x.length;
    const mean = axis.mean.slice(start * points, (start + 1) * points);
    const std = axis.std.slice(start * points, (start + 1) * points);
    const chart = charts[slider.figure];
    const lower = mean.map((m, i) => (m === null ? null : m - 2 * std[i])); // null: nothing allowed has these values
    const upper = mean.map((m, i) => (m === null ? null : m + 2 * std[i]));
    const layout = { ...chart.layout, yaxis: { ...chart.layout.yaxis, range: axis.range.slice() } };
    layout.xaxis = structuredClone(axis.xaxis);
    const lines = [lower, upper, mean].map((y, i) => ({ ...chart.data[i + 1], x: axis.x, y }));
    const rug = { ...chart.data[0], x: axis.data, y: axis.data.map(() => axis.floor) };
    describe(chart, slider.alt, `${slider.names[along]} for ${others.join(", ")}`, axis.cells, mean);
    return Plotly.react(chart, [rug, ...lines], layout, config);
  }

  // What the figure shows, in words and in the table behind it.
  function describe(chart, alt, setting, cells, mean) {
    chart.setAttribute("aria-label", alt.replace("{}", () => setting));
    const behind = chart.closest("figure").querySelector(".scroll");
    behind.setAttribute("aria-label", `Effect of ${setting}`);
    behind.querySelector("caption").textContent = `Effect of ${setting}`;
    const rows = cells.map(([i, value]) => {
      const row = document.createElement("tr");
      const head = row.appendChild(document.createElement("th"));
      head.scope = "row";
      head.textContent = value;
      const cell = row.appendChild(document.createElement("td"));
      cell.className = "n";
      cell.textContent = mean[i];
      return row;
    });
    behind.querySelector("tbody").replaceChildren(...rows);
  }

  function slices() {
    const sliders = read("sliders");
    sliders.forEach(slice); // a browser that reloads leaves sliders where they stood
    document.addEventListener("input", (event) => {
      const { slider, along } = event.target.dataset;
      const changed = slider ?? along;
      if (changed !== undefined) slice(sliders[Number(changed)], Number(changed));
    });
  }

  // --- theme ---

  function themes() {
    const button = document.getElementById("theme");
    const order = ["automatic", "light", "dark"];
    const show = () => (button.textContent = `Theme: ${root.dataset.theme || "automatic"}`);
    button.addEventListener("click", () => {
      const next = order[(order.indexOf(root.dataset.theme || "automatic") + 1) % order.length];
      if (next === "automatic") delete root.dataset.theme;
      else root.dataset.theme = next;
      store.set("localStorage", "sumbo-theme", next);
      show();
      recolour();
    });
    show();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => recolour());
    let before = null;
    addEventListener("beforeprint", () => {
      before = root.dataset.theme || null;
      root.dataset.theme = "light";
      recolour({ width: PAPER });
      for (const svg of document.querySelectorAll(".main-svg")) {
        svg.setAttribute("viewBox", `0 0 ${PAPER} ${svg.getAttribute("height")}`);
      }
    });
    addEventListener("afterprint", () => {
      if (before === null) delete root.dataset.theme;
      else root.dataset.theme = before;
      for (const svg of document.querySelectorAll(".main-svg")) svg.removeAttribute("viewBox");
      recolour({ width: null, autosize: true });
    });
  }

  // --- copying ---

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (error) {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  function copying() {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const name = button.textContent;
      button.addEventListener("click", async () => {
        const done = await copy(JSON.parse(button.dataset.copy));
        button.textContent = done ? "Copied" : "Cannot copy here";
        say(button.textContent);
        setTimeout(() => (button.textContent = name), 1500);
      });
    }
  }

  // --- a page that is being watched looks again, and stays where the reader was ---

  function watching() {
    const seconds = Number(root.dataset.watch);
    const key = `sumbo-place-${location.pathname}`;
    const place = JSON.parse(store.get("sessionStorage", key) || "null");
    const details = () => [...document.querySelectorAll("details")];
    if (place) {
      details().forEach((element, k) => (element.open = place.open.includes(k)));
      scrollTo(0, place.top);
      store.set("sessionStorage", key, "null");
    }
    if (!seconds) return;
    const button = document.getElementById("pause");
    let paused = false;
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? "Refresh again" : "Pause refreshing";
    });
    let touched = 0;
    for (const kind of ["input", "pointerdown", "keydown"]) addEventListener(kind, () => (touched = Date.now()), true);
    setInterval(() => {
      // Not while somebody is at it.
      if (paused || document.hidden || Date.now() - touched < 1000 * seconds) return;
      const open = details().flatMap((element, k) => (element.open ? [k] : []));
      store.set("sessionStorage", key, JSON.stringify({ top: scrollY, open }));
      location.reload();
    }, 1000 * seconds);
  }

  themes();
  copying();
  watching();
  draw()
    .then(() => {
      slices();
      root.dataset.ready = "yes";
    })
    .catch((error) => {
      root.dataset.ready = "no";
      for (const text of document.querySelectorAll(".waiting")) {
        text.textContent = "This browser cannot draw the figure. Its numbers are in the table below.";
      }
      console.error(error);
    });
})();

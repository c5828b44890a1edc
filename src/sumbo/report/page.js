"use strict";
(function () {
  const nonce = document.currentScript.nonce;
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const say = (text) => (document.getElementById("status").textContent = text);
  const charts = [];
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
      await Plotly.relayout(place, inks());
      charts[Number(place.dataset.figure)] = place;
    }
  }

  function recolour() {
    for (const chart of charts) if (chart) Plotly.relayout(chart, inks());
  }

  // --- slices: what is varied, and where the other parameters stand ---

  function slice(slider, number) {
    const along = Number(document.querySelector(`[data-along="${number}"]`).value);
    const knobs = [...document.querySelectorAll(`[data-slider="${number}"]`)];
    knobs.forEach((knob, k) => (knob.parentElement.hidden = k === along));
    const axis = slider.axes[along];
    let start = 0;
    knobs.forEach((knob, k) => {
      if (k !== along) start = start * slider.stops[k][0].length + Number(knob.value);
    });
    const points = axis.x.length;
    const mean = axis.mean.slice(start * points, (start + 1) * points);
    const std = axis.std.slice(start * points, (start + 1) * points);
    const chart = charts[slider.figure];
    const lower = mean.map((m, i) => m - 2 * std[i]);
    const upper = mean.map((m, i) => m + 2 * std[i]);
    const layout = { ...chart.layout, yaxis: { ...chart.layout.yaxis, range: axis.range.slice() } };
    const { title, ...rest } = chart.layout.xaxis;
    for (const key of [...Object.keys(axis.xaxis), "autorange"]) delete rest[key];
    layout.xaxis = { ...rest, ...JSON.parse(JSON.stringify(axis.xaxis)) };
    for (const [key, value] of Object.entries(layout.xaxis)) if (value === null) delete layout.xaxis[key];
    const lines = [lower, upper, mean].map((y, i) => ({ ...chart.data[i + 1], x: axis.x, y }));
    const rug = { ...chart.data[0], x: axis.data, y: axis.data.map(() => axis.floor) };
    const data = [rug, ...lines];
    return Plotly.react(chart, data, layout, config);
  }

  function slices() {
    const sliders = read("sliders");
    document.addEventListener("input", (event) => {
      const knob = event.target.closest("[data-slider]");
      if (knob) {
        const text = sliders[Number(knob.dataset.slider)].stops[Number(knob.dataset.k)][0][Number(knob.value)];
        knob.setAttribute("aria-valuetext", text);
        knob.parentElement.querySelector("output").textContent = text;
      }
      const changed = knob ? knob.dataset.slider : event.target.dataset && event.target.dataset.along;
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
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    let before = null;
    addEventListener("beforeprint", () => {
      before = root.dataset.theme || null;
      root.dataset.theme = "light";
      recolour();
    });
    addEventListener("afterprint", () => {
      if (before === null) delete root.dataset.theme;
      else root.dataset.theme = before;
      recolour();
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

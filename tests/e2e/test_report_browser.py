"""Reports in a real browser: they draw, answer, stay within the screen, run nobody's script and fetch nothing.

Needs Chromium at /usr/bin/chromium (or CHROMIUM=path) and the playwright package; skipped where either is missing.
"""

import json
import os
import re
import shutil
import socket
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from reports import CASES, HOSTILE, LIMITED, LOG_ENDS, log_slices, long, unsure, view_of_case
from studies import until

import sumbo
from sumbo.report.page import write

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 120_000  # milliseconds; a busy machine draws slowly

playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright: pip install it")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def reports_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def views():
    """Views are kept: what they have computed is theirs to use again."""
    return {}


class Tab:
    """A page that was opened from disk, and what it said and asked for meanwhile."""

    def __init__(self, browser, path, **settings):
        self.context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | settings))
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.messages, self.requests = [], []
        self.page.on("console", lambda m: self.messages.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.messages.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.messages.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.address = Path(path).as_uri()
        self.page.goto(self.address)
        self.page.wait_for_selector("html[data-ready]")

    def run(self, script, argument=None):
        return self.page.evaluate(script, argument)


@pytest.fixture
def opened(browser, reports_folder, views):
    """Opens the report of a case."""
    tabs = []

    def _open(name, *, watching=False, every=10, **settings):
        path = reports_folder / f"{name}{'-watched' * watching}.html"
        if not path.exists():
            if name not in views:
                own = {f.__name__: f for f in (long, unsure, log_slices)}
                views[name] = sumbo.report.view(own[name]()) if name in own else view_of_case(name)
            write(views[name], path, watching=watching)
            if watching:
                text = path.read_text(encoding="utf-8")
                assert 'data-watch="10"' in text
                path.write_text(text.replace('data-watch="10"', f'data-watch="{every}"'), encoding="utf-8")
        tabs.append(Tab(browser, path, **settings))
        return tabs[-1]

    yield _open
    for tab in tabs:
        tab.context.close()


# --- every kind of study ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_opens_from_disk_and_draws_everything(opened, name):
    tab = opened(name)
    assert tab.run("document.documentElement.dataset.ready") == "yes"
    assert tab.messages == []
    assert tab.requests == [tab.address]
    headings = tab.page.locator("main h2").all_inner_texts()
    assert headings == [
        "The search",
        "Best parameters",
        "The structure",
        "What the groups do",
        "How far to trust it",
        "Time",
    ]
    charts = tab.page.locator("[data-figure]").count()
    assert tab.page.locator("[data-figure] .main-svg").count() >= charts
    assert tab.page.locator(".waiting").count() == 0
    logarithmic = [texts for axis in "xy" for kind, texts in labels(tab, axis) if kind == "log"]
    assert all(len(texts) >= 2 for texts in logarithmic)
    assert os.path.getsize(tab.address.removeprefix("file://")) < 5_000_000


@pytest.mark.parametrize("name", LIMITED)
def test_problems_as_they_are_are_drawn(opened, name):
    tab = opened(name)
    assert tab.run("document.documentElement.dataset.ready") == "yes"
    assert tab.messages == []
    assert not re.search(r"\b(NaN|null|undefined)\b", tab.page.locator("main").inner_text())
    headings = tab.page.locator("main h2").all_inner_texts()
    assert ("The constraints" in headings) == (name in ("constrained", "mixture"))


@pytest.mark.parametrize("name", ["ordinary", "many_parameters", "hostile", "empty", "constrained", "conditional"])
def test_fits_a_phone(opened, name):
    tab = opened(name, viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True)
    assert tab.run("document.documentElement.scrollWidth") <= 375
    assert tab.run("window.visualViewport.scale") == 1
    too_wide = tab.run(
        "[...document.querySelectorAll('[data-figure]')].filter(e => e.getBoundingClientRect().right > 375).length"
    )
    assert too_wide == 0
    sliders = tab.run("[...document.querySelectorAll('input[type=range]')].map(e => e.offsetWidth).filter(Boolean)")
    assert all(width > 120 for width in sliders)


def test_nothing_in_a_name_is_run(opened):
    tab = opened("hostile")
    assert tab.run("window.hacked") is None
    assert tab.page.title() == f"{HOSTILE[0]} · sumbo report"
    # Hovering makes labels of names; links and images of theirs would be elements by now.
    for chart in tab.page.locator("[data-figure]").all()[:8]:
        chart.hover()
    assert tab.page.locator("img[src='x'], svg a, [data-figure] b").count() == 0
    assert tab.run("document.querySelectorAll('a[href^=javascript]').length") == 0
    assert tab.page.locator("text=click").first.is_visible()  # shown as it is written
    assert tab.run("window.hacked") is None
    assert tab.messages == []


def test_policy_stops_scripts_and_requests(opened):
    """The last line of defence is awake: what slipped through could neither run nor call home."""
    tab = opened("empty")
    with socket.create_server(("127.0.0.1", 0)) as server:
        home = f"http://127.0.0.1:{server.getsockname()[1]}/"
        tab.run("at => document.body.insertAdjacentHTML('beforeend', `<img src='${at}' onerror='hacked = 1'>`)", home)
        tab.run("at => { fetch(at).catch(() => 0) }", home)
        tab.run("() => { const s = document.createElement('script'); s.text = 'hacked = 1'; document.body.append(s) }")
        until(lambda: tab.run("1") and len([m for m in tab.messages if "Content Security Policy" in m]) >= 3)
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    assert tab.run("window.hacked") is None


# --- what a reader does ----------------------------------------------------------------------------------------


def curve(tab, slider=0):
    """The curve, as drawn."""
    script = "number => { const s = JSON.parse(document.getElementById('sliders').textContent)[number];"
    script += (
        " const c = document.querySelectorAll('[data-figure]')[s.figure]; const t = c._fullData[c.data.length - 1];"
    )
    return tab.run(script + " return [Array.from(t.x), Array.from(t.y)]; }", slider)


def test_sliders_move_their_curves(opened, views):
    tab = opened("ordinary")
    x, before = curve(tab)
    knob = tab.page.locator("input[type=range]:visible").first
    knob.focus()
    knob.press("Home")
    _, low = curve(tab)
    for _ in range(10):
        knob.press("ArrowRight")
    _, high = curve(tab)
    assert low != high
    assert before != low or before != high
    # u * v * w: where the curve is drawn along u, it turns over as w goes from -1 to 1.
    last = tab.page.locator("input[type=range]:visible").last
    last.focus()
    last.press("Home")
    at_least = curve(tab)[1]
    last.press("End")
    at_most = curve(tab)[1]
    assert at_least[-1] < at_least[0]
    assert at_most[-1] > at_most[0]
    assert last.get_attribute("aria-valuetext") == "1"
    assert tab.page.locator("output:visible").last.inner_text() == "1"
    expected = views["ordinary"]
    j = expected.model.decomposition.groups.index((4, 5, 6))
    stop = int(tab.page.locator("input[type=range]:visible").first.input_value())
    v = expected.axis(5, 7)[0][stop]
    mean = expected.effect_unit * expected.effect(j)(np.array([[u, v, 1.0] for u in x]))[0]
    assert at_most == pytest.approx(mean.tolist(), rel=2e-3, abs=2e-3)


def test_what_is_varied_can_be_chosen(opened):
    tab = opened("ordinary")
    before = curve(tab)
    tab.page.locator("select").select_option(label="v")
    after = curve(tab)
    assert after[0] == [1, 2, 3, 4, 5]
    assert after != before
    assert tab.page.locator(".knob:visible label").all_inner_texts() == ["u", "w"]
    assert tab.messages == []


SHOWN = """() => {
    const place = document.querySelector('.sliding'), chart = place.querySelector('[data-figure]');
    const line = chart._fullData[chart.data.length - 1], behind = place.querySelector('.scroll');
    return {
        label: chart.getAttribute('aria-label'),
        region: behind.getAttribute('aria-label'),
        caption: behind.querySelector('caption').textContent,
        rows: [...behind.querySelectorAll('tbody tr')].map(r => [...r.children].map(c => Number(c.textContent))),
        knobs: [...place.querySelectorAll('.knob')].filter(k => !k.hidden).map(k =>
            [k.querySelector('label').textContent, k.querySelector('output').textContent,
             k.querySelector('input').getAttribute('aria-valuetext')]),
        along: place.querySelector('select').selectedOptions[0].textContent,
        curve: [Array.from(line.x), Array.from(line.y)],
    }
}"""


def test_words_and_numbers_of_a_slice_follow_its_sliders(opened):
    tab = opened("ordinary")

    def agree():
        shown = tab.run(SHOWN)
        assert all(output == spoken for _, output, spoken in shown["knobs"])
        setting = ", ".join(f"{name} = {value}" for name, value, _ in shown["knobs"])
        for words in (shown["label"], shown["caption"], shown["region"]):
            assert re.search(rf"effect of {shown['along']}\b.*{re.escape(setting)}", words, re.IGNORECASE)
        x = [value for value, _ in shown["rows"]]
        assert x == sorted(set(x))
        assert [effect for _, effect in shown["rows"]] == pytest.approx(
            np.interp(x, *shown["curve"]).tolist(), rel=1e-3, abs=1e-3
        )
        return shown

    seen = [agree()]
    knob = tab.page.locator("input[type=range]:visible").last
    for key in ("Home", "End"):
        knob.focus()
        knob.press(key)
        seen.append(agree())
    assert "w = -1;" in seen[1]["label"]
    assert "w = 1;" in seen[2]["label"]
    assert seen[1]["rows"] != seen[2]["rows"]
    tab.page.locator("select").select_option(label="v")
    assert [value for value, _ in agree()["rows"]] == [1, 2, 3, 4, 5]
    assert tab.messages == []


def labels(tab, axis, chart="[data-figure]"):
    """For every figure, what is written along its axis and the numbers that are meant; powers of ten have a tspan."""
    script = f"""chart => [...document.querySelectorAll(chart)].map(c => [c._fullLayout.{axis}axis.type,
        [...c.querySelectorAll('.{axis}tick text')].map(t => t.querySelector('tspan') ? null : t.textContent)])"""
    return tab.run(script, chart)


def test_ticks_of_logarithmic_axes_can_be_read(opened):
    tab = opened("log_slices")
    for name, (low, high) in LOG_ENDS.items():
        tab.page.locator("select").select_option(label=name)
        ((kind, texts),) = labels(tab, "x", ".sliding [data-figure]")
        assert kind == "log"
        assert len(texts) >= 3
        if name != "seven":
            numbers = [float(text) for text in texts]
            assert numbers == sorted(set(numbers))
            assert low <= numbers[0] < numbers[-1] <= high
    assert tab.messages == []


def test_theme_follows_the_system_and_the_button(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    dark, light = opened("one_trial", color_scheme="dark"), opened("one_trial", color_scheme="light")
    assert dark.run(paper) == "rgb(20, 22, 26)"
    assert light.run(paper) == "rgb(251, 251, 250)"
    button = light.page.locator("#theme")
    button.click()
    button.click()
    assert button.inner_text() == "Theme: dark"
    assert light.run(paper) == "rgb(20, 22, 26)"
    light.page.reload()
    light.page.wait_for_selector("html[data-ready]")
    assert light.run(paper) == "rgb(20, 22, 26)"
    text = light.run("getComputedStyle(document.querySelector('[data-figure] .xtick text')).fill")
    assert text == "rgb(168, 175, 186)"


def test_keyboard_reaches_everything(opened):
    tab = opened("ordinary")
    tab.page.keyboard.press("Tab")
    assert tab.run("document.activeElement.textContent") == "Skip to the content"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0
    tab.page.keyboard.press("Enter")
    assert tab.run("document.activeElement.id") == "main"
    seen = set()
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        seen.add(tab.run("document.activeElement.tagName"))
        assert tab.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"A", "BUTTON", "SUMMARY", "SELECT", "INPUT"} <= seen


def test_copying(opened, views):
    tab = opened("ordinary", permissions=["clipboard-read", "clipboard-write"])
    tab.page.locator("summary", has_text="As JSON").click()
    tab.page.locator("button", has_text="Copy JSON").click()
    tab.page.wait_for_selector("#status:text('Copied')", state="attached")
    assert json.loads(tab.run("navigator.clipboard.readText()")) == dict(views["ordinary"].best.params)


def test_tables_tell_the_story_without_scripts(browser, opened):
    address = opened("ordinary").address
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator(".waiting").first.is_visible()
    page.locator("summary", has_text="Numbers of this figure").nth(1).click()
    assert page.locator("tr:visible", has_text="lr, batch").first.inner_text().split() == ["lr,", "batch", "1"]
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 31, 36)"  # dark ink on white paper
    context.close()


def test_a_watched_page_looks_again_and_stays_in_its_place(opened):
    tab = opened("ordinary", watching=True, every=1)
    tab.page.locator("summary", has_text="As Python").click()
    tab.run("window.scrollTo({top: 700, behavior: 'instant'})")
    assert tab.page.locator("#pause").is_visible()
    with tab.page.expect_event("load"):
        pass
    tab.page.wait_for_selector("html[data-ready]")
    assert tab.run("window.scrollY") == pytest.approx(700, abs=40)
    assert tab.page.locator("details", has=tab.page.locator("text=As Python")).get_attribute("open") is not None
    assert tab.page.locator("#pause").is_visible()


def test_a_page_that_nobody_watches_stays(opened):
    tab = opened("one_trial")
    assert not tab.page.locator("#pause").is_visible()


# --- colours -------------------------------------------------------------------------------------------------


def contrast(first, second):
    """By the Web Content Accessibility Guidelines, of two colours with parts from 0 to 255."""
    parts = np.array([first, second], dtype=float) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


def test_numbers_of_the_matrix_can_be_read_in_both_themes(opened, tmp_path):
    tab = opened("unsure")
    numbers = tab.page.locator(".heatmap-label text")
    assert len(set(numbers.all_text_contents())) >= 4
    matrix = tab.page.locator("[data-figure]", has=tab.page.locator(".heatmap-label"))
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        tab.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        matrix.screenshot(path=tmp_path / f"{scheme}.png")
        pixels = 255 * imread(tmp_path / f"{scheme}.png")[..., :3]
        corner = matrix.bounding_box()
        looks = "texts => texts.map(t => [t.textContent, getComputedStyle(t).fill, t.getBoundingClientRect().toJSON()])"
        for text, fill, box in numbers.evaluate_all(looks):
            ink = [int(part) for part in re.findall(r"\d+", fill)[:3]]
            beside = pixels[int(box["y"] - corner["y"] + box["height"] / 2), int(box["x"] - corner["x"]) - 4]
            assert contrast(ink, beside) >= 4.5, (scheme, text, ink, beside)


# --- paper ---------------------------------------------------------------------------------------------------


def printed(tab, path, **paper):
    """Words on paper as (page, top, text), in order; all of them are on it."""
    tab.page.pdf(path=path, **paper)
    text = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, text=True, check=True).stdout
    words = []
    for page, part in enumerate(text.split("<page ")[1:]):
        width, height = map(float, re.match(r'width="([\d.]+)" height="([\d.]+)"', part).groups())
        found = re.findall(r'<word xMin="(.+?)" yMin="(.+?)" xMax="(.+?)" yMax="(.+?)">(.*?)</word>', part)
        for *box, word in found:
            left, top, right, bottom = map(float, box)
            assert 0 <= left <= right <= width, word
            assert 0 <= top <= bottom <= height, word
            words.append((page, top, unescape(word)))
    return words


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="there is no pdftotext here: apt-get install poppler-utils")
def test_paper_loses_nothing(opened, tmp_path):
    tab = opened("long")
    for paper in ({"format": "A5"}, {"format": "Letter", "landscape": True}, {"format": "A4"}):
        words = printed(tab, tmp_path / "closed.pdf", **paper)
        texts = [word for *_, word in words]
        assert {"0", "50", "100", "150", "200"} <= set(texts)  # the whole axis
        assert "250 rows, in the HTML file" in " ".join(texts)
    # One after the other, as in the page: nothing is printed over what follows.
    last = {word: (page, top) for page, top, word in words}
    rows, after = [last[f"p{i}"] for i in range(45)], last["JSON:"]
    assert rows == sorted(set(rows))
    assert rows[-1] < after
    tab.page.locator("summary", has_text="Numbers of this figure").first.click()
    all_words = printed(tab, tmp_path / "open.pdf", format="A4")
    texts = [word for *_, word in all_words]
    assert texts.count("done") >= 250
    assert {str(n) for n in range(250)} <= set(texts)
    assert all_words[-1][0] > words[-1][0]
    # On the screen the figure is as wide as before.
    chart = "document.querySelector('[data-figure]')"
    assert tab.run(f"{chart}.querySelector('.main-svg').clientWidth") == tab.run(f"{chart}.clientWidth")
    assert tab.messages == []


def test_prints_in_light_colours(opened):
    tab = opened("one_trial", color_scheme="dark")
    assert len(tab.page.pdf()) > 10_000
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("nav").is_visible()

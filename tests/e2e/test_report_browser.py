"""Reports in a real browser: they draw, answer, stay within the screen, run nobody's script and fetch nothing.

Needs Chromium at /usr/bin/chromium (or CHROMIUM=path) and the playwright package; skipped where either is missing.
"""

import json
import os
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from reports import CASES, HOSTILE, view_of_case

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

    def _open(name, *, watching=False, **settings):
        path = reports_folder / f"{name}{'-watched' * watching}.html"
        if not path.exists():
            views.setdefault(name, view_of_case(name))
            write(views[name], path, watching=watching)
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
    assert os.path.getsize(tab.address.removeprefix("file://")) < 5_000_000


@pytest.mark.parametrize("name", ["ordinary", "many_parameters", "hostile", "empty"])
def test_fits_a_phone(opened, name):
    tab = opened(name, viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True)
    assert tab.run("document.documentElement.scrollWidth") <= 375
    assert tab.run("window.visualViewport.scale") == 1
    too_wide = tab.run(
        "[...document.querySelectorAll('[data-figure]')].filter(e => e.getBoundingClientRect().right > 375).length"
    )
    assert too_wide == 0


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
        server.settimeout(2.0)
        home = f"http://127.0.0.1:{server.getsockname()[1]}/"
        tab.run("at => document.body.insertAdjacentHTML('beforeend', `<img src='${at}' onerror='hacked = 1'>`)", home)
        tab.run("at => { fetch(at).catch(() => 0) }", home)
        tab.run("() => { const s = document.createElement('script'); s.text = 'hacked = 1'; document.body.append(s) }")
        with pytest.raises(TimeoutError):
            server.accept()
    assert tab.run("window.hacked") is None
    assert len([m for m in tab.messages if "Content Security Policy" in m]) >= 3


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
    mean = expected.units.effect * expected.effect(j)(np.array([[u, v, 1.0] for u in x]))[0]
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
    context.close()


def test_a_watched_page_looks_again_and_stays_in_its_place(opened):
    tab = opened("ordinary", watching=True)
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


def test_prints_in_light_colours(opened):
    tab = opened("one_trial", color_scheme="dark")
    assert len(tab.page.pdf()) > 10_000
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("nav").is_visible()

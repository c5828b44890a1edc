"""A password never shows, however badly the URL that holds it is written and wherever it stands."""

import contextlib
import io
import json
import subprocess
import traceback
from urllib.parse import quote

import pytest
import sqlalchemy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from studies import SPACE, command, write_program, write_study

import sumbo
from sumbo.cli import main

SECRET = "Xq7hunter2Zw"  # nothing else is written like this
HERE = "127.0.0.1:1"  # nobody answers there, and says so at once
BEGIN = 'goal = "minimize"\nbudget = 2\ncommand = ["true"]\nparameters = "environment"\n'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where reports are written


def said(*arguments):
    """What a command prints, and how what it raises would be."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main([*map(str, arguments)])
        except SystemExit:  # argparse
            pass
        except Exception as error:
            out.write("".join(traceback.format_exception(error)))
    return out.getvalue()


def hides(text, *secrets):
    for secret in secrets:
        assert secret.casefold() not in text.casefold(), text


# Where a URL may have got to in a study file.
PLACES = {
    "storage": "storage = {}\n" + SPACE,
    "storage in a list": "storage = [{}]\n" + SPACE,
    "storage in a table": SPACE + "[storage]\nurl = {}\n",
    "storage in the space": "[space]\nstorage = {}\n" + SPACE,
    "storage in a parameter": "[space.a]\ntype = 'float'\nlow = 0\nhigh = 2\nstorage = {}\n",
    "storage in another table": SPACE + "[timeout]\nstorage = {}\n",
    "storage in the method": "method = {name = 'random', storage = {}}\n" + SPACE,
    "storage in the method's name": "method.name.storage = {}\n" + SPACE,
    "executor": "executor = {}\n" + SPACE,
    "executor in a list": "executor = [{}]\n" + SPACE,
    "executor in a table": SPACE + "[executor]\naddress = {}\n",
    "executor in the space": "[space]\nexecutor = {}\n" + SPACE,
    "the goal": SPACE.replace("[", "goal = {}\n[", 1),
    "a bound": "[space.a]\ntype = 'float'\nlow = {}\nhigh = 2\n",
    "a group": "together = [['a', {}]]\n" + SPACE,
    "a key": "{} = 1\n" + SPACE,
    "a key twice": "[{}]\n[{}]\n" + SPACE,
    "a text without quotes": "storage = x{}\n" + SPACE,
    "a text that goes on": "storage = {} {}\n" + SPACE,
}


def study_with(folder, url, place):
    """A study file with the URL in some place."""
    text = json.dumps(url, ensure_ascii=False).replace("\x7f", "\\u007f")
    rest = PLACES[place].replace("{}", text)
    begin = BEGIN if rest.startswith("method") else BEGIN + 'method = "random"\n'
    path = folder / "study.toml"
    path.write_text((begin if "\ngoal" not in rest else begin.partition("\n")[2]) + rest, encoding="utf-8")
    return path


COMMANDS = (("run",), ("show", "--json"), ("report",))
S = SECRET
CASES = [
    ("storage", f"postgresql://me:{S}@{HERE}/x"),
    ("storage", f"postgresql+psycopg://me:{S}@{HERE}/x"),
    ("storage", f"postgresql://me:%3C{S}%40@{HERE}/x"),
    ("storage", f"postgresql://me:ab@{S}@{HERE}/x"),
    ("storage", f"postgresql://me:{S}/x"),
    ("storage", f"postgresql://me:{S}"),
    ("storage", f"postgresql://me@{HERE}/x?password={S}"),
    ("storage", f"postgresql://me@{HERE}/x?PASSWORD={S}"),
    ("storage", f"postgresql://me@{HERE}/x?p%61ssword={S}"),
    ("storage", f"postgresql://me:ab\n{S}@{HERE}/x"),
    ("storage", f"postgresql://me:{S}@localhost:port/x"),
    ("storage", f"postgresql:///me:{S}@{HERE}/x"),
    ("storage", f"mysql://me:{S}@{HERE}/x"),
    ("storage", f"me:{S}@localhost"),
    ("storage", f"{S}@localhost"),
    ("storage in a list", f"postgresql://me:{S}@{HERE}/x"),
    ("storage in a table", f"postgresql://me:{S}@{HERE}/x"),
    ("storage in the space", f"postgresql://me:{S}@{HERE}/x"),
    ("storage in another table", f"postgresql://me:{S}@{HERE}/x"),
    ("storage in the method's name", f"postgresql://me:{S}@{HERE}/x"),
    ("executor", f"dask://me:{S}:1"),
    ("executor in a list", f"dask://me:{S}@{HERE}"),
    ("executor in a table", f"dask://me:{S}@{HERE}"),
    ("executor in the space", f"dask://me:{S}@{HERE}"),
]


@pytest.mark.parametrize(("place", "url"), CASES)
def test_a_study_file_does_not_give_a_password_away(place, url, tmp_path):
    path = study_with(tmp_path, url, place)
    text = "".join(said(*command, path) for command in COMMANDS)
    assert "sumbo: " in text
    hides(text, SECRET)


ARGUMENTS = [
    ("report", "--storage", f"postgresql://me:{S}@{HERE}/x", "wing"),
    ("report", "--storage", f"postgresql://me:{S}@localhost:port/x", "wing"),
    ("report", "--storage", f"postgresql://me:{S}", "wing"),
    ("report", "--storage", f"postgresql://me:ab{{{S}}}@{HERE}/x", "wing"),
    ("report", "--storage", f"postgresql//me:{S}@{HERE}/x", "wing"),
    ("report", "--storage", f"sqlite:///me:{S}@{HERE}/x", "wing"),
    ("report", "--storage", f"sqlite:///me:{S * 400}@{HERE}/x", "wing"),
    ("run", "wing.toml", "--storage", f"postgresql://me:{S}@{HERE}/x"),
    ("run", f"--storage=postgresql://me:ab {S}@{HERE}/x"),
    ("run", "wing.toml", "--budget", f"postgresql://me:{S}@{HERE}/x"),
    ("show", f"postgresql://me:{S}@{HERE}/x"),
    (f"postgresql://me:{S}@{HERE}/x",),
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_an_argument_does_not_give_a_password_away(arguments):
    text = said(*arguments) + said(*arguments, "--json")
    assert "sumbo" in text
    hides(text, SECRET)


def test_what_is_harmless_still_shows(tmp_path):
    url = f"postgresql://me:{SECRET}@{HERE}/wing?sslmode=disable&password={SECRET}"
    text = said("show", study_with(tmp_path, url, "storage"))
    assert f"postgresql://me:***@{HERE}/wing?sslmode=disable&password=***" in text
    assert "refused" in text
    text = said("ask", study_with(tmp_path, "sqlite:///a folder@home/wing.db", "storage"))
    assert str(tmp_path / "a folder@home") in text
    text = said("show", study_with(tmp_path, f"me:{SECRET}", "storage"))
    assert "storage: expected" in text
    assert "postgresql://USER@HOST/DATABASE" in text
    text = said("show", study_with(tmp_path, f"me:{SECRET}", "executor in a table"))
    assert "executor: expected a text in quotes, got a table" in text


def test_a_part_of_a_password_is_not_looked_up_as_a_host(tmp_path):
    # It would be sent to a name server.
    url = f"postgresql://me:ab@{SECRET}@{HERE}/x"
    for text in (said("show", study_with(tmp_path, url, "storage")), said("report", "--storage", url, "wing")):
        assert f"postgresql://me:***@{HERE}/x: expected" in text
        assert "%40 for an @" in text


def test_what_programs_say_is_recorded_without_passwords(tmp_path):
    told = f"cannot reach http://me:{SECRET}@localhost/x with password={SECRET}"
    write_program(tmp_path, f"echo '{told}' >&2; echo 'http://localhost/x?token={SECRET}'")
    path = write_study(tmp_path, 'command = ["./sim"]\nparameters = "environment"\nbudget = 10')
    text = said("run", path)
    assert "the first 10 evaluations all failed" in text
    text += said("show", path) + said("show", path, "--json") + said("export", path, "--json") + said("report", path)
    for file in tmp_path.iterdir():
        if file.name != "sim":
            text += file.read_bytes().decode("utf-8", errors="replace")
    hides(text, SECRET)
    assert "http://me:***@localhost/x" in text


@pytest.mark.parametrize(
    "words",
    [
        "host=localhost password = '{}' user=me",
        'host=localhost password = "a {}" user=me',
        "password=a;{}",
        "connect(host='localhost', password='a&{}')",
        "{{'user': 'me', 'password': 'it is {}'}}",
        '{{"user": "me", "password":"{}"}}',
        "passwd: {}",
    ],
)
def test_a_password_that_is_called_one_is_hidden_however_it_is_written(words):
    def f(x):
        raise ConnectionError(words.format(SECRET))

    with pytest.raises(sumbo.SumboError) as caught:
        sumbo.minimize(f, [(0.0, 1.0)], 20, method="random", progress=False, timeout=60)
    assert "ConnectionError: " in str(caught.value)
    assert SECRET not in str(caught.value)


def test_reasons_on_record_are_shown_without_passwords(tmp_path):
    # Of an older sumbo, or by hand.
    path = write_study(tmp_path)
    said("ask", path)
    said("tell", path, "--trial", "0", "--failed", f"see http://me:{SECRET}@localhost/x")
    text = (
        said("show", path) + said("show", path, "--json") + said("export", path) + said("report", path, "-o", "r.html")
    )
    text += (tmp_path / "r.html").read_text()
    assert "http://me:***@localhost/x" in text
    hides(text, SECRET)


def test_a_report_of_an_optimizer(tmp_path):
    opt = sumbo.Optimizer([(0, 1)], "random", seed=0)
    opt.tell(opt.ask(), failed=True, reason=f"see http://me:{SECRET}@localhost/x")
    sumbo.report.write(opt, "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "http://me:***@localhost/x" in page
    hides(page, SECRET)


def test_an_objective_in_python_that_quotes_a_url():
    def f(x):
        raise OSError(f"cannot reach http://me:{SECRET}@localhost/x")

    with pytest.raises(sumbo.SumboError) as caught:
        sumbo.minimize(f, [(0, 1)], budget=10, method="random")
    assert isinstance(caught.value.__cause__, OSError)  # as the user raised it: those are the user's own words
    assert "http://me:***@localhost/x" in str(caught.value)
    hides(str(caught.value), SECRET)


def test_an_error_that_nobody_foresaw(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError(f"no host {SECRET}@localhost")

    monkeypatch.setattr(sqlalchemy, "create_engine", fail)
    text = said("show", study_with(tmp_path, f"postgresql://me:ab%40{SECRET}@{HERE}/x", "storage"))
    assert "Traceback" in text
    assert "no host ***@localhost" in text
    hides(text, SECRET)


def test_a_process_of_its_own(tmp_path):
    path = study_with(tmp_path, f"postgresql://me:ab\n{SECRET}@{HERE}/x?PASSWORD={SECRET}", "storage")
    done = subprocess.run(command("run", path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "storage postgresql://me:***@" in done.stderr
    hides(done.stdout + done.stderr, SECRET)


@st.composite
def secrets(draw):
    """A secret that is written like nothing else, and a password that holds it."""
    secret = "Xq7" + draw(st.text("abcdefghkmnpXYZ23456789", min_size=9, max_size=9))
    around = st.text("@:/?#&=%+{}[]<>'\"\\ \n\t;,.!*$|\x7f\u00e4\u5b57\u2028", max_size=3)
    password = draw(around) + secret + draw(around)
    return secret, draw(
        st.sampled_from([password, quote(password, safe=""), "".join(f"%{b:02x}" for b in password.encode())])
    )


USER = "127.0.0.1"  # which is a host too, if the URL is misread
URLS = (
    "{scheme}://{user}:{password}@{here}/x",
    "{scheme}://{user}:{password}@{here}/x?sslmode=disable",
    "{scheme}://{user}:ab@{password}@{here}/x",
    "{scheme}://:{password}@{here}/x",
    "{scheme}://{user}:{password}@{here}",
    "{scheme}://{user}:{password}@{user}:port/x",
    "{scheme}://{user}:{password}@[::1/x",
    "{scheme}://{user}:x{password}",
    "{scheme}://{user}:x{password}/x",
    "{scheme}:///{user}:{password}@{here}/x",
    "{scheme}:/{user}:{password}@{here}/x",
    "{scheme}:{user}:{password}@{here}/x",
    "{scheme}//{user}:{password}@{here}/x",
    "{user}:{password}@{here}",
    "{scheme}://{user}@{here}/x?password={password}",
    "{scheme}://{user}@{here}/x?sslmode=disable&PASSWORD={password}",
    "{scheme}://{user}@{here}/x?p%61ssword={password}&sslmode=disable",
    "{scheme}://{user}@{here}/x?sslPassword={password}",
    "{scheme}://{here}/x?pass={password}",
    " {scheme}://{user}:{password}@{here}/x",
)
SCHEMES = ("postgresql", "postgresql+psycopg", "POSTGRESQL", "sqlite", "mysql", "dask", "tcp")
WAYS = (*PLACES, "--storage", "an unknown option", "a number", "the study", "Python")


def raised(function, *arguments, **options):
    """The traceback of an error."""
    with pytest.raises(sumbo.SumboError) as caught:
        function(*arguments, **options)
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value)


def in_python(url):
    """What errors of the library say that quote a text."""
    text = raised(sumbo.minimize, sum, [(0, 1)], budget=2, executor=url)
    text += raised(sumbo.minimize, sum, [(0, 1)], budget=url)
    text += raised(sumbo.Optimizer, [(0, 1)], url)
    return text + raised(sumbo.Float, url, 1)


@given(secrets(), st.sampled_from(URLS), st.sampled_from(SCHEMES), st.sampled_from(WAYS), st.sampled_from(COMMANDS))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(("Xq7abc", "'Xq7abc"), URLS[7], "postgresql", "Python", ("run",))
@example(("Xq7abc", " Xq7abc"), URLS[5], "postgresql", "a key twice", ("run",))
@example(("Xq7abc", "{Xq7abc}"), URLS[0], "postgresql", "storage", ("run",))
def test_a_password_never_shows(tmp_path, secret, form, scheme, way, command):
    secret, password = secret
    if "@" not in form:  # then it ends at the first
        password = password.replace("@", "")
    url = form.format(scheme=scheme, user=USER, here=HERE, password=password)
    if way == "Python":
        text = in_python(url)
    elif way == "--storage":
        text = said("report", "--storage", url, "wing", "-o", tmp_path / "wing.html")
    elif way == "an unknown option":
        text = said("run", "wing.toml", "--storage", url)
    elif way == "a number":
        text = said("run", "wing.toml", "--budget", url)
    elif way == "the study":
        text = said(*command, url)
    else:
        text = said(*command, study_with(tmp_path, url, way))
    assert text
    hides(text, secret, quote(secret), "".join(f"%{b:02x}" for b in secret.encode()))

"""Commands called here and now, and spaces with odd names and choices."""

import contextlib
import io
import json

from hypothesis import Phase
from studies import write_study

from sumbo.cli import main

TYPED_FLOAT = {"type": "float", "low": 0, "high": 1}
# Texts that tables, spreadsheets and terminals have trouble with.
NASTY = (
    *("", " ", "a", " a", "a ", "A", "a b", "a  b", "a\nb", "a\rb", "a\r\nb", "a\0", "\0", "\t", "\ta", "a\tb"),
    *("1", "1.0", "01", "1,0", "1e0", "-1", "+1", "1.5", "1,5", "true", "TRUE", "false", "null", "nan", "inf", "1_0"),
    *("=1+1", "+a", "-a", "@a", "'", "''", "'a", "'=1+1", "\uff1d1", '"', '""', 'a"b', '"a"', ",", ";", "a;b", "a,b"),
    *("trial", "value", "minimize", "result", "Value", "state", "failed", "x;trial;value", "ä", "ß", "SS", "\ufeff"),
)
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink such spaces takes minutes


def says(*arguments):
    """Exit code, and what is said on standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ending:  # how argparse refuses
            code = ending.code
    return code, out.getvalue(), err.getvalue()


def answer(*arguments, code=0):
    """What a command answers with --json."""
    came, out, err = says(*arguments, "--json")
    assert came == code, (came, err)
    return json.loads(out)


def toml(value):
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def write_space(folder, space, **options):
    """A study file for parameters by name, each as the keys of its table."""
    tables = [f"[space.{toml(name)}]\n" for name in space]
    keys = ["".join(f"{key} = {toml(value)}\n" for key, value in table.items()) for table in space.values()]
    return write_study(folder, space="".join(map(str.__add__, tables, keys)), **options)


def kinds(params):
    """Parameters to compare by value and type: 1 == True."""
    return {name: (type(value), value) for name, value in params.items()}


def accepted(folder, space):
    """The space without what is refused when the study is opened: names and choices that no table can tell apart."""
    kept = {}
    for name, table in space.items():
        study = write_space(folder, kept | {name: table})
        code, _, err = says("best", study)
        assert code == 1
        if "there is no such study yet" in err:
            kept[name] = table
        else:
            assert err.startswith(f"sumbo: {study}: space"), err
    return kept

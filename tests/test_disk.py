"""A disk that is full, a folder that is read-only: a clear error, and nothing is lost."""

import contextlib
import gc
import io
import os
import subprocess
from pathlib import Path

import pytest
from studies import command, write_study

from sumbo.cli import main

root_alone = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk"
)
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def said(*arguments):
    """Exit code and words of a command, with no connection left open that would keep the disk busy."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(a) for a in arguments])
    gc.collect()
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no right to mount here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@full
def test_an_export_to_a_full_disk(tmp_path, capsys):
    study = write_study(tmp_path)
    assert main(["ask", str(study)]) == 0
    assert main(["export", str(study), "--out", "/dev/full"]) == 1
    assert "No space left" in capsys.readouterr().err
    assert main(["ask", str(study), "--csv", "/dev/full"]) == 1
    assert "sumbo ask --open" in capsys.readouterr().err


@full
@pytest.mark.parametrize("arguments", [("export",), ("best", "--json")])
def test_standard_output_on_a_full_disk(arguments, tmp_path):
    study = write_study(tmp_path)
    said("ask", study)
    said("tell", study, "--trial", "0", "1.5")
    with open("/dev/full", "w") as nowhere:
        name, *rest = arguments
        done = subprocess.run(command(name, study, *rest), stdout=nowhere, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("sumbo: "), done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@root_alone
def test_a_full_disk_loses_nothing(small_disk):
    study = write_study(small_disk)
    assert said("ask", study, "-n", "3")[0] == 0
    assert said("tell", study, "--trial", "0", "1.5")[0] == 0
    (small_disk / "ballast").write_bytes(b"x")
    with (small_disk / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:  # until there is no space left
            ballast.write(b"x" * 512)
    codes = []
    for arguments in [("ask", study, "-n", "60"), ("tell", study, "--trial", "1", "2.5"), ("ask", study, "-n", "60")]:
        code, _, err = said(*arguments)
        codes.append(code)
        assert code == 0 or ("full" in err and "study.db" in err), err
    assert 1 in codes, "the disk was not full"
    (small_disk / "ballast").unlink()
    assert said("tell", study, "--trial", "2", "0.5")[0] == 0
    code, out, _ = said("export", study)
    assert code == 0
    values = {line.split(",")[0]: line.split(",")[-5] for line in out.splitlines()[1:]}
    assert values["0"] == "1.5"
    assert values["2"] == "0.5"
    assert values["1"] == ("2.5" if codes[1] == 0 else "")
    assert said("ask", study)[0] == 0


@root_alone
def test_a_read_only_folder(small_disk):
    study = write_study(small_disk)
    assert said("ask", study, "-n", "2")[0] == 0
    assert said("tell", study, "--trial", "0", "1.5")[0] == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for arguments in [("ask", study), ("tell", study, "--trial", "1", "2.5"), ("show", study), ("export", study)]:
        code, _, err = said(*arguments)
        assert code == 1, err
        assert "study.db" in err
        assert "is it read-only?" in err, err
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert said("tell", study, "--trial", "1", "2.5")[0] == 0
    assert said("best", study)[1].startswith("trial 0: 1.5")


@root_alone
def test_a_new_study_in_a_read_only_folder(small_disk):
    study = write_study(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, _, err = said("ask", study)
    assert code == 1
    assert str(small_disk) in err
    assert "is it read-only?" in err

"""Tables within a page that people write."""

from pathlib import Path


def put_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what is between two marks of the page.

    Raises:
        ValueError: the page lacks one of the marks.
    """
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page}: expected the lines {begin!r} and {end!r}, between which the table goes; add them")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")

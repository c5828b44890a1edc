"""Text that can be shown to anyone: URLs without their passwords.

A badly written URL is taken apart differently by everyone who reads it, and then a password turns up as a host, a port
or a key. So what is plainly harmless is shown, and all the rest is hidden.
"""

import re
from urllib.parse import unquote, unquote_plus

_HIDDEN = "***"

# These can be read in one way only: a password ends at the last @, and a ? comes after that. PORT is for our advice.
_PLAIN = re.compile(
    r"(?P<scheme>[\w+.-]+://)((?P<user>([\w.~*-]|%40)*)(?P<password>:[^?#]*)?@)?"
    r"(?P<place>([\w.-]*|\*{3}|\[[\da-fA-F:.]+\])(:(\d{1,5}|PORT))?(/[\w./~+-]*)?)(\?(?P<query>[^@#]*))?"
)
_FILE = re.compile(r"(?P<place>sqlite:///(?!.*:.*@)[^?]*)(\?(?P<query>[^@]*))?", re.DOTALL)
_HARMLESS = re.compile(r"(host|hostaddr|port|user|dbname|sslmode|connect_timeout|application_name)=[\w./~-]*")
_SECRET = re.compile(r"\w*(password|passwd|pwd|secret|token|key)")

# In other text: where a URL begins; what goes on without spaces, but for punctuation; a secret that is called one.
_BEGIN = re.compile(r"(?<![\w+.-])[\w+.-]{2,}:/+")
_WORD = re.compile(r"\S*[^\s'\"`)\]}>,;:.]")
_QUOTED = re.compile(r"'([^\\']|\\.){,500}'|\"([^\\\"]|\\.){,500}\"", re.DOTALL)  # long texts would take long
_LINE = re.compile(".*")
_NAMED = re.compile(
    r"((?:password|passwd|pwd|secret|token)\s*=\s*|(?:password|passwd|pwd)\\?['\"]?\s*:\s*)"
    r"((?P<mark>\\?['\"]).*?(?:(?P=mark)|\Z)|\S+)",
    re.IGNORECASE | re.DOTALL,
)


def shown(url: str) -> str:
    """A URL without what is secret in it, or may be.

    Example:
        >>> shown("postgresql://me:se@cret@localhost/wing?sslmode=disable&password=secret")
        'postgresql://me:***@localhost/wing?sslmode=disable&password=***'
        >>> shown("postgresql://me:secret/wing")
        'postgresql://***'
    """
    found = _FILE.fullmatch(url) or _PLAIN.fullmatch(url)
    if found is None:
        scheme = re.match(r"[\w+.-]+://", url)
        return f"{scheme[0] if scheme else ''}{_HIDDEN}"
    parts = found.groupdict()
    text = parts.get("scheme") or ""
    if parts.get("password") is not None:
        text += f"{parts['user']}:{_HIDDEN}@"
    elif parts.get("user") is not None:  # of a database, a name; elsewhere it may be a token
        text += f"{parts['user'] if text.startswith('postgresql') else _HIDDEN}@"
    query = parts["query"]
    return text + parts["place"] + ("" if query is None else f"?{'&'.join(map(_item, query.split('&')))}")


def _item(item: str) -> str:
    """A key of a query with its value, as far as they can be shown."""
    key = item.partition("=")[0]
    if _HARMLESS.fullmatch(item):
        return item
    return f"{key}={_HIDDEN}" if _SECRET.fullmatch(unquote_plus(key).casefold()) else _HIDDEN


def safe(text: object, *urls: str) -> str:
    """The text without the secrets of these URLs, in whatever parts it repeats them, and of others that it quotes.

    Example:
        >>> safe("no host 'cret@localhost'", "postgresql://me:se@cret@localhost/wing")
        "no host '***@localhost'"
        >>> safe("cannot read http://me:secret@localhost/data")
        'cannot read http://me:***@localhost/data'
    """
    text = str(text)
    for url in filter(None, urls):
        text = text.replace(url, shown(url))
        hidden = sorted(_words(url) - _words(shown(url)), key=len, reverse=True)
        # A short word may be a part of many others.
        ways = "|".join(word if len(word) > 3 else rf"(?<!\w){word}(?!\w)" for word in hidden)
        text = re.sub(ways, _HIDDEN, text, flags=re.IGNORECASE) if ways else text
    return _without_urls(text)


def may_hold_secret(text: str) -> bool:
    """Is it a URL, or meant to be one with a password?"""
    return "://" in text or ":" in text.rpartition("@")[0]


def _words(url: str) -> set[str]:
    """What a URL is made of, as it is written and as it is meant."""
    return {word for word in re.findall(r"\w+", f"{url} {unquote(url)}") if len(word) > 1}


def _without_urls(text: str) -> str:
    """A text with the URLs in it as they can be shown."""
    done, at, last = [], 0, text.rfind("@")
    while begin := _BEGIN.search(text, at):
        done.append(_without_names(text[at : begin.start()]))
        end = _end(text, begin, last)
        done.append(begin[0] if end is None else shown(text[begin.start() : end]))
        at = begin.end() if end is None else end
    return "".join([*done, _without_names(text[at:])])


def _end(text: str, begin: re.Match[str], last: int) -> int | None:
    """Where a URL ends that begins here, the last @ being there; None if it is a path only."""
    if "://" in begin[0]:
        quoted = _QUOTED.match(text, max(begin.start() - 1, 0))
        if quoted and ("@" in quoted[0] or last < quoted.end()):
            return quoted.end() - 1
        url = _WORD.match(text, begin.start())
        if url and (_FILE.fullmatch(url[0]) or _PLAIN.fullmatch(url[0])):
            return url.end()
    elif last < begin.end():
        return None
    # All up to an @ may be a password with spaces in it; where there is none, all of the line.
    rest = _WORD.match(text, last) if last > begin.end() else _LINE.match(text, begin.end())
    return rest.end() if rest else None


def _without_names(text: str) -> str:
    """A text that holds no URL, without values that are named and words as me:secret@localhost."""
    text = _NAMED.sub(rf"\1{_HIDDEN}", text)
    return _WORD.sub(_without_user, _QUOTED.sub(_without_user, text)) if "@" in text else text


def _without_user(word: re.Match[str]) -> str:
    return _HIDDEN if may_hold_secret(word[0]) else word[0]

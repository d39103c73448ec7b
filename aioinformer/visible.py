"""Control characters made visible, for text that another party wrote and a person reads.

Names, keys and messages of a server go to terminals and log files. A terminal obeys what is in them: an escape sequence
sets its title or erases a line, a carriage return overwrites one, a bidirectional control reorders it, a line feed
starts a line that the program did not write.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with TAB, LF, CR and ESC; DEL; C1 with NEL and CSI
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f"  # zero width space and joiners, left-to-right and right-to-left marks
    "\u2028-\u202e"  # line and paragraph separators, embeddings and overrides
    "\u2060-\u206f"  # word joiner, invisible operators, isolates, deprecated format characters
    "\ufeff\ufff9-\ufffb"  # byte order mark, interlinear annotations
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # format characters of other planes, tags
    "]"
)

_CONTROLS = re.compile(b"[\x00-\x1f\x7f]")
_SPACES = bytes.maketrans(b"\t\n\r", b"   ")


def visible(text: str) -> str:
    r"""Return `text` with each control, format and bidirectional character replaced by its escape, such as `\x1b`.

    The result has one line, can be encoded, and leaves a terminal in the state in which it was. Line feeds and tabs
    are escaped too. Backslashes are left alone, so that `visible(visible(text)) == visible(text)`; the result is for
    reading and cannot be reversed. A text of printable characters alone is returned as it is.
    """
    return text if text.isprintable() else _HIDDEN.sub(_escape, text)


def visible_json(text: bytes) -> bytes:
    r"""Return a JSON text on one line whose hidden characters are escapes such as `\u202e`.

    The parsed value is the same: in valid JSON such characters stand in strings only, and line feeds, carriage returns
    and tabs between values, where a space replaces them. Bytes that are not UTF-8 become U+FFFD.
    """
    if text.isascii() and not _CONTROLS.search(text):
        return text
    shown = text.translate(_SPACES).decode(errors="replace")
    return (shown if shown.isprintable() else _HIDDEN.sub(_escape_json, shown)).encode()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

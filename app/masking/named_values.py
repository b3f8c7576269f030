"""Finds secrets by the name before them, such as `token` or `password`, in text that developers paste.

The name can be in source code, in an HTTP request or a log, in a table, or in a sentence. A value is found
in three steps: match the separator after the name, find where the value ends, and check that the value is
plausible for the name. Without a separator, as in "password hunter22" or "token (…)", stricter checks
apply. Values in tables are found by `tables.py`, and values that precede their names by
`values_before_names.py`.
"""

import re
from typing import NamedTuple

from app.masking.secret_names import (
    NAME_TOKENS,
    SecretKind,
    SyntaxConfidence,
    is_plausible,
    is_plausible_below,
    is_plausible_enclosed,
    is_plausible_without_separator,
    secret_kind,
    unqualified_name,
)
from app.masking.tables import find_secret_in_row
from app.masking.text_spans import (
    CLOSING,
    QUOTE,
    TextSpan,
    find_enclosed,
    is_chosen_password,
    is_random,
    match_end,
)

_SPACE = r"[ \t]{0,8}"
_VERB = (
    r"(?:(?![码号])[一-龥]){0,4}"
    r"(?:是|为|就是|(?:填|用|传|设|写|配|换|改|变|设置|配置|生成)(?:的是|的|了|成|为){0,2})[:：]?"
    r"|(?:(?!code|id\b|num|order|trace|request)[a-z]{1,12} ){0,7}(?:is|was|be|equals|set to)(?=[ :]):?"
    r"|(?:for|of|on|in) [a-z0-9 _.-]{1,30}:"
)
"""The words between a name and its value, as in "token is …", "token for the shop: …" and "密码改成 …"."""
# Each named group from `pair` to `verb`, except `level` and `broken`, is one syntax of separators. The
# comments show an example of each syntax, in which the name is `token`. `_CONFIDENCE` rates each syntax.
_SEPARATOR = re.compile(
    rf"(?P<closed>{QUOTE}|\*\*|[”’」』])?\]?(?:{_SPACE}[（(][^()（）\n]{{0,30}}[)）])?{_SPACE}(?:"
    rf"(?P<pair>,?\s{{0,40}}{QUOTE}?value{QUOTE}?\s{{0,4}}[:=])"  # {"name": "token", "value": "…"}
    r"|(?P<encoded>%(?P<level>(?:25){0,4})3[AD])"  # token%3D…
    r"|(?P<assigned>:\s?(?:str|string|bytes|any|SecretStr)\s?=|=>|:=|={1,3}|＝|\\u003D)"  # token=…
    # token: …, where `broken` is a line break before the value
    r"|(?P<colon>->|→|[:：]|\\u003A)(?:\*\*)?(?P<broken>[ \t]{0,4}(?:[>|][+-]?)?\r?\n)?"
    r"|(?P<cell>\|)"  # | token | … |
    r"|(?P<argument>,)"  # put("token", "…")
    r"|(?P<call>\()"  # setToken("…")
    r"|(?P<element>(?:\s[^<>\n]{0,60})?>)"  # <token>…</token>
    r"|(?P<bracket>\[)"  # token[…]
    # set the token to …, or: the token was changed to …
    r"|(?P<change>(?:(?:[a-z]{1,12} ){0,4}(?:reset|(?:chang|updat|rotat|switch|renew)ed) )?(?:to|as)(?= ))"
    rf"|(?P<verb>{_VERB})"  # the token is …
    r")[ \t]{0,20}",
    re.IGNORECASE,
)
_CONFIDENCE = {
    "pair": SyntaxConfidence.LABELLED,
    "encoded": SyntaxConfidence.ASSIGNED,
    "assigned": SyntaxConfidence.ASSIGNED,
    "colon": SyntaxConfidence.LABELLED,
    "cell": SyntaxConfidence.SENTENCE,
    "argument": SyntaxConfidence.SENTENCE,
    "call": SyntaxConfidence.SENTENCE,
    "element": SyntaxConfidence.ASSIGNED,
    "bracket": SyntaxConfidence.SENTENCE,
    "change": SyntaxConfidence.SENTENCE,
    "verb": SyntaxConfidence.SENTENCE,
}
_KEY_SEGMENT = re.compile(r":[\w{}.-]{1,60}:")
"""The part `:42:` after the name in the key of a cache entry, such as shop:token:42:lock."""
_VALUE_GAP = re.compile(r"[ \t]{1,4}")
_NEXT_ARGUMENT = re.compile(rf"{QUOTE}\s{{0,4}},\s{{0,20}}(?={QUOTE})")
"""The text between an option and its value in a list of arguments, such as ["--token", "…"]."""
_SETTER = re.compile(
    r"(?:set|with|put|add)_?[A-Z].*|app_?key|api_?key|secret|token|password", re.IGNORECASE
)
"""The name of a function whose argument is the value, such as setToken."""
_OPENING = re.compile(
    r"(?:\[\s{0,20}|(?:new )?(?:\[\]byte|bytes|[A-Za-z]{0,20}(?:Str|String))\()?[bfruBFRU@]?"
    rf"(?P<quote>{QUOTE}|[“‘「『])"
)
"""The opening quotation mark of a literal. A bracket, a call such as bytes( or a prefix may precede it."""
_BARE = re.compile(r"(?:(?!\#/|&quot;|[.](?:\s|$)|[\"'`<>,;&|)}\]\\])[!-~])+")
"""An unquoted value. It ends before a space, a quotation mark, a closing bracket, a comma and the like."""
_GROUPED = re.compile(
    r"(?:\d{3,6}(?:[ -]\d{3,8}){1,5}|\d{6}[ -]\d{9,13}|\d{12}[ -]\d{5}[\dXx])[Xx]?(?![A-Za-z0-9])"
)
"""A number with spaces or dashes, such as 110105 19491231 002X or 622202 1234567890128."""
_ELEMENT = re.compile(r"(?:<!\[CDATA\[)?(?P<value>[^<\]\n]{1,4096})")
_SCHEME = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9-]{2,40} +"
    r"(?:(?:[A-Za-z][a-z]{1,9}|[Vv]\d) +(?=[A-Za-z0-9]{12})(?=[A-Za-z]{0,40}\d))?)?+"
)
"""The optional scheme before credentials, such as Bearer.

A second word, as in "Custom scheme …", has at most ten letters or is a version, and letters with a digit
follow it. Any other second word may be a token that is followed by an id.
"""
_CREDENTIALS = re.compile(
    r"(?:\w{1,40}=(?:\\{0,4}\"[^\"\\\n]*\\{0,4}\"|[^\s,;\"'`\\‹›]+)(?:[,;][ ]?)?)+"
    r"|[^\s\"'`<>,;\\‹›，。；）)}\]]+",
    re.ASCII,
)
_COOKIE = r"[A-Za-z0-9_.-]{1,60}=[!#-&(-:<-\[\]-_a-~]{0,4096}"
_COOKIES = re.compile(rf"{_COOKIE}(?:;[ ]?(?:{_COOKIE}|[A-Za-z-]{{1,20}}(?=;|\s|$))){{0,60}}")
_PUBLIC_VALUE = re.compile(
    r"(?:[ \t:：=\"'`*|（>/\\-]|(?<=\s)\(|[是为传填用]"
    r"|%(?:25){0,4}(?:3[AD]|2[27])){0,8}(?:(?:is|was)[ :]{1,3})?"
    r"(?P<value>(?:W/\")?[A-Za-z0-9][A-Za-z0-9+/=_-]{5,1000})"
)
_LAST_ARGUMENT = re.compile(rf"{QUOTE}\s{{0,4}}\)")
"""Matches the end of a quoted last argument.

In `put("token", "x")`, "x" is the last argument and therefore the value. In a list of names such as
`("token", "page", "size")`, "page" is not the last argument and therefore not a value.
"""
_END = re.compile(r"[ \t]*(?:$|[\n\r,;&|)}\]<>\"'`\\，。；、）#])")
"""The characters that may follow a value. Other text shows that the value is a word of a sentence."""
_GAP = re.compile(
    r"(?:(?<=no)\.)?(?:(?:[\"'`*”’」』】]{1,2})(?=[ \t]))?[ \t]{0,4}(?:[—–]{1,2}[ \t]{0,4}|--?[ \t]{1,4})?",
    re.IGNORECASE,
)
"""The text between a name and its value if there is no separator.

It consists of these parts in this order, each of which is optional: the full stop of "no.", closing
quotation marks or brackets, spaces, and a dash.
"""
_BELOW = re.compile(
    r"[\"'`*”’」』】]{0,2}[ \t]{0,4}(?:[:：是为]|is)?[*`]{0,2}"
    r"(?:[ \t]{0,8}\r?\n){1,3}(?:`{3}\w{0,10}\r?\n)?[ \t]{0,8}"
)
"""The text between a name and its value on one of the next lines."""
_COMMA = re.compile(r"[ \t]?[,，、~][ \t]?")
_ERROR_OR_UNIT = re.compile(r"[ ]?(?:错误|报错|限流|毫秒|秒|error)", re.IGNORECASE)
_MAX_ERROR_CHARS = 5
"""Maximum length, in characters, of an error code or a duration.

A longer number is a one-time code, even before a word such as 错误 or 毫秒.
"""
_BRACKETS = "（(《〈[【{<"
_MIN_CODE_IN_BRACKETS_CHARS = 6
"""Minimum length, in characters, of a one-time code in brackets, if nothing else indicates a value."""
_STATUS = re.compile(r"\d{3}")
_CARD_CODE = re.compile(r"cv[cv]2?|安全码", re.IGNORECASE)
"""The name of the code on a bank card. This code can have three digits, like an HTTP status."""
_CLOSING_MARK = re.compile(rf"[ ]?[{re.escape(''.join(CLOSING.values()))}]")
_LINE_END = re.compile(r"[ \t]{0,8}(?:\r?\n|$)")
_FROM = re.compile(
    r"(?:[ ](?:for|of|on|in)(?:[ ][\w.-]{1,20}){1,3}?)?"
    r"(?:[ ](?:is|was|were|has|had|been|got|just|changed|updated|reset|rotated|switched|moved)){0,4}"
    r"(?:[ ]from[ ]|[ ]?[已刚是要]{0,2}[从由][ ]?)",
    re.IGNORECASE,
)
_TO = re.compile(
    r"[ ]?(?:(?:back )?(?:in)?to[ ]|->|→"
    r"|(?:改|换|变|更新|更换|修改|切换|重置|设置?|调整)[回成为到了]{1,2})[ ]?"
)
"""`_FROM` precedes the old value, and `_TO` the new one: "token from … to …", "密码从 … 改成 …"."""
_CHANGE_VERB = re.compile(
    r"\b(?:set|reset|(?:chang|updat|rotat|switch|renew)(?:e|ed|es|ing)?)(?: [\w-]{1,15}){0,4} $",
    re.IGNORECASE,
)
"""A verb and other words before a name, as in "I changed the token to …"."""
_USER_BEFORE = re.compile(
    r"\b(?:user(?:name)?|login|account)[ :=][\w.@-]{1,40}"
    r"(?:,? (?:and|with)|[,/])(?: (?:the|my|his|her))? ?$",
    re.IGNORECASE,
)
"""A user name before the name of a password, as in "user alice and pass …"."""
_MAX_CHARS_BEFORE_NAME = 80
"""Number of characters before a name that are searched for `_CHANGE_VERB` or `_USER_BEFORE`."""
_EXAMPLE = re.compile(r"(?:sample|example|dummy|fake|示例|样例)[ ]?$", re.IGNORECASE)
"""Matches a word before a name that marks the value as an example, as in "sample passport"."""
_MAX_LITERAL_CHARS = 4_096
"""Maximum length of a quoted literal, in characters."""


class _ValueStart(NamedTuple):
    """A position where a value may start, and the syntax before it."""

    position: int
    confidence: SyntaxConfidence
    syntax: str
    """The name of the group in `_SEPARATOR` that matched.

    For `--token …`, it is "assigned". For `"--token", "…"` in a list of arguments, it is "option".
    """
    level: str = ""
    """The level of percent-encoding of the separator: "" for `%3D`, "25" for `%253D`, and so on."""
    closing_quote: str = ""
    """The closing quotation mark or `**` after the name, if any."""


def _find_value_start(text: str, start: int, end: int) -> _ValueStart | None:
    """Return where the value of the name text[start:end] starts; None if no separator assigns a value."""
    if text.startswith("--", max(start - 2, 0)):
        if gap := _VALUE_GAP.match(text, end):  # --token …
            return _ValueStart(gap.end(), SyntaxConfidence.ASSIGNED, "assigned")
        if gap := _NEXT_ARGUMENT.match(text, end):  # ["--token", "…"]
            return _ValueStart(gap.end(), SyntaxConfidence.SENTENCE, "option")
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return None
    syntax = next(name for name in _CONFIDENCE if separator[name])
    closing_quote = separator["closed"] or ""
    if not _may_follow(syntax, text, start, end, closing_quote):
        return None
    if separator["change"] in ("to", "as") and not _is_change(text, start):
        return None  # in "changed to", the separator itself says that something is changed
    confidence = SyntaxConfidence.SENTENCE if separator["broken"] else _CONFIDENCE[syntax]
    return _ValueStart(separator.end(), confidence, syntax, separator["level"] or "", closing_quote)


def _may_follow(syntax: str, text: str, start: int, end: int, closing_quote: str) -> bool:
    """Return whether `syntax` can assign a value to the name text[start:end]."""
    if syntax == "call":
        return _SETTER.fullmatch(unqualified_name(text[start:end])) is not None
    if syntax == "argument":
        return bool(closing_quote)
    if syntax == "element":
        return bool(closing_quote) or text[max(start - 1, 0) : start] in ("<", ":")
    if syntax == "colon":
        # The name is a part of a key of a cache entry, such as shop:token:42 or token:42:lock.
        is_in_key = text[max(start - 1, 0) : start] == ":" and text[end + 1 : end + 2].isalnum()
        return not is_in_key and _KEY_SEGMENT.match(text, end) is None
    return True


def _is_change(text: str, start: int) -> bool:
    """Return whether the words before `start` say that something is changed, as in "I set the token"."""
    return _CHANGE_VERB.search(text, max(start - _MAX_CHARS_BEFORE_NAME, 0), start) is not None


def _find_literal(text: str, position: int) -> tuple[int, int] | None:
    """Return the start and end of the text in the quoted literal at `position`, or None.

    A literal without a closing quotation mark ends where an unquoted value would end.
    """
    opening = _OPENING.match(text, position)
    if opening is None:
        return None
    closing = CLOSING.get(opening["quote"], opening["quote"])
    start = opening.end()
    end = text.find(closing, start, start + _MAX_LITERAL_CHARS)
    while end > 0 and text[end - 1] == "\\" and len(closing) == 1:
        end = text.find(closing, end + 1, start + _MAX_LITERAL_CHARS)
    if text.startswith((" ", "+", ",", ";"), start):
        return None  # the quotation mark closes a literal: "sign=" + sign
    if end < 0 or "\n" in text[start:end]:
        return start, match_end(_BARE, text, start)
    return start, end


def _find_unquoted(text: str, value_start: _ValueStart, kind: SecretKind) -> tuple[int, int]:
    """Return the start and end of an unquoted value; they are equal if there is no value."""
    pattern, position = _BARE, value_start.position
    if value_start.syntax == "element":
        pattern = _ELEMENT
    elif kind is SecretKind.COOKIE:
        pattern = _COOKIES
    elif kind is SecretKind.AUTHORIZATION:
        pattern, position = _CREDENTIALS, match_end(_SCHEME, text, position)
    elif value_start.syntax == "encoded":
        pattern = _percent_encoded(value_start.level)
    elif kind is SecretKind.PERSONAL:
        return position, _word_end(text, position, kind)
    match = pattern.match(text, position)
    if match is None:
        return position, position
    return match.span("value") if "value" in pattern.groupindex else match.span()


def _word_end(text: str, position: int, kind: SecretKind) -> int:
    """Return where the unquoted value at `position` ends. A PERSONAL number may contain spaces."""
    end = match_end(_BARE, text, position)
    return max(end, match_end(_GROUPED, text, position)) if kind is SecretKind.PERSONAL else end


def _percent_encoded(level: str) -> re.Pattern[str]:
    """Return a pattern for a value that ends before the next percent-encoded delimiter, such as %26 (&).

    `level` is the level of percent-encoding (see `_ValueStart.level`).
    """
    return re.compile(rf"(?:(?!%{level}(?:26|22|27|2C|7D|0A))[A-Z0-9%.~+/=_!*@-])+", re.IGNORECASE)


class NamedValues(NamedTuple):
    """The values that follow known names in a text. Both lists are in the order of the text."""

    secrets: list[TextSpan]
    public: list[TextSpan]
    """Values that are not secrets, such as order numbers, trace ids and digests."""


def find_named_values(text: str) -> NamedValues:
    """Return the plausible secrets and the public values that follow names in `text`."""
    values = NamedValues([], [])
    position = 0
    while (match := NAME_TOKENS.search(text, position)) is not None:
        position = match.end()
        kind = secret_kind(match["name"]) if match["name"] else None
        if kind is SecretKind.PUBLIC:
            if value := _PUBLIC_VALUE.match(text, position):
                values.public.append(TextSpan(*value.span("value"), match["name"]))
        elif kind and (secrets := _secrets_after(text, *match.span("name"), kind)):
            values.secrets.extend(secrets)
            position = secrets[-1].end
    return values


def _secrets_after(text: str, start: int, end: int, kind: SecretKind) -> list[TextSpan]:
    """Return the secrets that follow the name text[start:end].

    There is at most one, except in phrases such as "token from … to …".
    """
    if kind is SecretKind.PERSONAL and _EXAMPLE.search(text, max(start - 8, 0), start):
        return []
    if changed := _changed_secrets(text, start, end, kind):
        return changed
    value_start = _find_value_start(text, start, end)
    secret = _secret_at(text, value_start, kind, text[start:end]) if value_start else None
    secret = secret or _secret_without_separator(text, start, end, kind)
    secret = secret or _secret_below(text, start, end, kind)
    secret = secret or _secret_after_comma(text, start, end, kind)
    return [secret] if secret else []


def _secret_at(text: str, value_start: _ValueStart, kind: SecretKind, name: str) -> TextSpan | None:
    """Return the secret at `value_start`, or None."""
    if value_start.syntax == "cell":
        return find_secret_in_row(text, value_start.position, kind, name)
    literal = _find_literal(text, value_start.position)
    if value_start.syntax in ("argument", "call") and not (
        literal and _LAST_ARGUMENT.match(text, literal[1])
    ):
        return None
    may_be_enclosed = literal is None and value_start.syntax != "element"
    if may_be_enclosed and (
        found := _enclosed_secret(text, value_start.position, kind, name, is_assigned=True)
    ):
        return found
    if name.lower() == "pass" and literal is None:
        kind = SecretKind.OPAQUE  # "pass" may be a verb, or a test result such as "pass: 12"
    start, end = literal or _find_unquoted(text, value_start, kind)
    is_scheme_included = literal is not None or value_start.syntax == "element"
    if is_scheme_included and kind is SecretKind.AUTHORIZATION:
        start = match_end(_SCHEME, text, start)
    confidence = _syntax_confidence(text, value_start, end, literal is not None)
    if not _is_plausible_at(value_start, kind, text[start:end], confidence):
        return None
    # In {"otp": 123456}, the label needs quotation marks, because JSON has to stay valid.
    needs_quotes = (
        value_start.syntax == "colon"
        and literal is None
        and value_start.closing_quote.endswith(('"', "'"))
    )
    quote = value_start.closing_quote if needs_quotes else ""
    return TextSpan(start, end, unqualified_name(name), quote)


def _is_plausible_at(
    value_start: _ValueStart, kind: SecretKind, value: str, confidence: SyntaxConfidence
) -> bool:
    """Return whether `value` can be a secret.

    After "to" and "as", a value other than a password must meet stricter rules. For example, hunter22 can
    be a password, but not a token.
    """
    if value_start.syntax == "change" and kind is not SecretKind.PASSWORD:
        return is_plausible_without_separator(kind, value)
    return is_plausible(kind, value, confidence)


def _syntax_confidence(
    text: str, value_start: _ValueStart, end: int, is_quoted: bool
) -> SyntaxConfidence:
    """Return how strongly the syntax indicates a value that ends at `end`.

    For example, "see" in "token: see below" counts as part of a sentence, because more words follow.
    """
    if value_start.syntax in ("argument", "call", "option", "change", "verb"):
        return value_start.confidence
    if is_quoted:
        return SyntaxConfidence.QUOTED
    spaced = value_start.syntax in ("colon", "pair") or text[value_start.position - 1].isspace()
    return (
        SyntaxConfidence.SENTENCE
        if spaced and not _END.match(text, end)
        else value_start.confidence
    )


def _enclosed_secret(
    text: str, position: int, kind: SecretKind, name: str, *, is_assigned: bool
) -> TextSpan | None:
    """Return the secret in quotation marks or brackets at `position`, or None.

    `is_assigned` is true if a separator such as "is", or the word "my" before the name, indicates a value.
    Otherwise, a short value in brackets does not count as a one-time code.
    """
    enclosed = find_enclosed(text, position)
    if enclosed is None:
        return None
    value = text[slice(*enclosed)]
    is_short = text[position] in _BRACKETS and len(value) < _MIN_CODE_IN_BRACKETS_CHARS
    if kind is SecretKind.ONE_TIME and is_short and not is_assigned:
        return None
    if not is_plausible_enclosed(kind, value, text[position]):
        return None
    return TextSpan(*enclosed, unqualified_name(name))


def _secret_without_separator(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """Return the secret that follows the name text[start:end] without a separator, or None.

    For example, "password hunter22" and "token (…)". After a Chinese name, a space is not necessary.
    """
    name = text[start:end]
    position = match_end(_GAP, text, end)
    if name.isascii() and position == end and text[position : position + 1] in ("", *"\"'`<{"):
        return None  # no value follows: the mark may close the name, or the bracket belongs to source code
    if name == "pin":
        return None  # usually a verb, as in "pin 4 packages", unlike PIN
    is_mine = text.startswith("my ", max(start - 3, 0))
    if secret := _enclosed_secret(text, position, kind, name, is_assigned=is_mine):
        return secret
    if name.isascii() and position == end:
        return None
    value = text[position : _word_end(text, position, kind)]
    if not value or not is_plausible_without_separator(kind, value):
        return None
    if kind is SecretKind.ONE_TIME and _is_error_or_duration(text, position, value, name):
        return None
    if name.lower() == "pass" and not (
        is_chosen_password(value)
        and _USER_BEFORE.search(text, max(start - _MAX_CHARS_BEFORE_NAME, 0), start)
    ):
        return None  # "pass" is a verb here
    return TextSpan(position, position + len(value), unqualified_name(name))


def _is_error_or_duration(text: str, position: int, value: str, name: str) -> bool:
    """Return whether `value` is an HTTP status, an error code or a duration instead of a one-time code.

    For example, 3000 in 验证码 3000 毫秒 is a duration.
    """
    if _STATUS.fullmatch(value):
        return _CARD_CODE.fullmatch(name) is None
    is_short = len(value) <= _MAX_ERROR_CHARS
    return is_short and _ERROR_OR_UNIT.match(text, position + len(value)) is not None


def _secret_below(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """Return the secret that is alone on one of the lines below the name text[start:end], or None."""
    gap = _BELOW.match(text, end)
    if gap is None:
        return None
    word_start, word_end, after = _word_at(text, gap.end())
    value = text[word_start:word_end]
    if _LINE_END.match(text, after) is None or not is_plausible_below(kind, value):
        return None
    return TextSpan(word_start, word_end, unqualified_name(text[start:end]))


def _secret_after_comma(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """Return the secret after the name text[start:end] and a comma, or None.

    If more words follow in the line, the secret must be random, because the text may be a list of names.
    """
    gap = _COMMA.match(text, end)
    if gap is None or kind is SecretKind.OPAQUE:
        return None
    word_start, word_end, after = _word_at(text, gap.end())
    value = text[word_start:word_end]
    is_last = _LINE_END.match(text, after) is not None
    if not is_plausible_below(kind, value) or not (is_last or is_random(value, min_chars=12)):
        return None
    return TextSpan(word_start, word_end, unqualified_name(text[start:end]))


def _changed_secrets(text: str, start: int, end: int, kind: SecretKind) -> list[TextSpan]:
    """Return the old and the new secret after the name text[start:end], as in "token from … to …"."""
    gap = _FROM.match(text, end)
    if gap is None:
        return []
    old_start, old_end, after_old = _word_at(text, gap.end())
    to = _TO.match(text, after_old)
    if to is None or old_start == old_end:
        return []
    label = unqualified_name(text[start:end])
    spans = [
        TextSpan(old_start, old_end, label),
        TextSpan(*_word_at(text, to.end())[:2], label),
    ]
    return [
        span for span in spans if is_plausible_without_separator(kind, text[span.start : span.end])
    ]


def _word_at(text: str, position: int) -> tuple[int, int, int]:
    """Return the start and end of the word at `position`, and the position after its closing mark.

    If the word is not in quotation marks or brackets, this position is the end of the word.
    """
    if enclosed := find_enclosed(text, position):
        return *enclosed, match_end(_CLOSING_MARK, text, enclosed[1])
    end = match_end(_BARE, text, position)
    return position, end, end

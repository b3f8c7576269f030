"""Decides from headings and labels what a table or list of an API page contains: its role.

A label is a short text above the table or list, such as "Response fields:".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ingestion.sources.api_pages.columns import Columns, parts_of
from ingestion.sources.api_pages.operation import PARAMETER_ROLES, Role
from ingestion.sources.api_pages.structures import caption_of

_PATTERNS: Mapping[Role, str] = MappingProxyType(
    {
        "permissions": r"权限|授权(?:范围|信息|项|点)|<scopes?>|<permissions?>|<privileges?>"
        r"|<(?:following|required|needed) roles?>",
        "errors": r"错误|异常|返回码|状态码(?!\W*(?:[为是]\W*)?[123]\d\d)|失败"
        r"|<err(?:or)?s?(?:_?codes?)?>|<exceptions?>|<failures?>|<faults?>|<problems?>|<(?:goes|go) wrong>"
        r"|^\W*(?:(?:http )?status\W{1,3}|http )?[45](?:\d\d|xx)(?!\w)|[(（][45]\d\d[)）]$"
        r"|<(?:status|return|response|result) codes?>(?!\W*(?:(?:is|[为是])\W*)?[123]\d\d)",
        "public": r"(?:公共|通用|全局)(?:请求|入|系统)?(?:参数|头)"
        r"|<(?:common|public|global) (?:request )?(?:param|field|argument)",
        "headers": r"请求头|头部|报文头|<headers?>",
        "response": r"响应|返回|出参|应答|输出|回参|<responses?>|<returns?>|<output>|<result>"
        r"|<repl(?:y|ies)>|<answers?>|<(?:get|comes|sent) back>"
        r"|^\W*(?:(?:http )?status\W{1,3}|http )?2(?:\d\d|xx)(?!\w)|[(（]2\d\d[)）]$",
        "request": r"请求|入参|查询|路径|参数|字段|输入|<requests?>|<query>|<path>|<body>"
        r"|<param(?:eter)?s?>|<args?>|<arguments?>|<inputs?>|<form>|<payload>|<fields?>",
    }
)
"""Words that announce what a table contains.

`<` and `>` stand for the start and the end of an English word (see `_compile_words`). The first role that
matches is used. Therefore, "Error response" is about errors.
"""


def _compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which `<` and `>` stand for the start and the end of an English word."""
    pattern = pattern.replace("<", "(?<![A-Za-z])").replace(">", "(?![A-Za-z])")
    return re.compile(pattern, re.IGNORECASE)


_PUBLIC = rf"(?:{_compile_words(_PATTERNS['public']).pattern})"
_CLAUSE = r"[^，,。；;：:.!！()（）]{0,40}"
_REFER = (
    r"(?:(?<![常意])见|参[考阅照]|查看|\bsee\b|\brefer to\b)"
    r"(?!\W*(?:[以如]?下|示例|below\b|examples?\b|the (?:following|table)\b))"
)
_REFERENCE = re.compile(
    rf"(?:\bfor (?:the )?)?{_PUBLIC}{_CLAUSE}[，,：:]?{_CLAUSE}?{_REFER}\W{{0,9}}\w{_CLAUSE}"
    rf"|{_REFER}{_CLAUSE}{_PUBLIC}{_CLAUSE}|除{_CLAUSE}{_PUBLIC}{_CLAUSE}外"
    r"|\b(?:ha(?:s|ve)|in|of|takes?) (?:the|this) (?:following )?form\b",
    re.IGNORECASE,
)
"""A clause whose words do not say what the table below it contains.

Most of these clauses only refer to the common parameters: "公共参数见…", "For common parameters see …". The
others are phrases such as "Events have the form".
"""
_HEADERS = _compile_words(f"{_PATTERNS['headers']}|响应头|返回头")
_RESPONSE_HEADERS = _compile_words("<response headers?>|(?:响应|返回)(?:报文)?头")
_RESPONSE_NAME = re.compile(r"[a-z\d](?:_(?:rsp|resp|response)|Rsp|Resp|(?<!Error)Response)\b")
_REQUEST_NAME = re.compile(r"[a-z\d](?:_(?:req|request)|Req|Request)\b")
_ROLES: Sequence[tuple[Role, re.Pattern[str]]] = (
    ("response", _RESPONSE_HEADERS),
    *((role, _compile_words(pattern)) for role, pattern in _PATTERNS.items()),
    # Names of schemas, such as `order_rsp` and `CreateOrderRequest`.
    ("response", _RESPONSE_NAME),
    ("request", _REQUEST_NAME),
)
_ROLES_BY_COLUMN = ("headers", "response")
"""Roles that the title of the name column can state: `Header`, `Response field`."""
_NEUTRAL = re.compile(
    r"(?:参数|字段|属性)(?:说明|描述|列表|详情|定义|含义|解释)?|说明"
    r"|(?:param(?:eter)?|field|attribute|propert(?:y|ie))s?(?: (?:description|list|detail|table)s?)?",
    re.IGNORECASE,
)
"""Labels that announce parameters but not whether they are those of a request or a response.

The text above such a label decides.
"""
_STRONG_REQUEST = _compile_words(
    "请求|入参|查询|路径|输入|<requests?>|<query>|<path>|<ur[li]>|<arg(?:ument)?s?>|<inputs?>|<form>"
)
"""Words that name the request, unlike 参数 and "body", which a response can have as well."""
_NOTIFICATION = re.compile(
    r"(?:通知|回调|推送|事件)(?:消息|请求)?(?:参数|字段|内容|报文|消息体)"
    r"|\b(?:callback|webhook|notification|event) (?:param(?:eter)?s?|fields?|payload|body)\b",
    re.IGNORECASE,
)
_FIELD_WORDS = re.compile(r"参数|字段|属性|param(?:eter)?s?|fields?|attributes?", re.IGNORECASE)
_FOLLOWING = re.compile(
    r"the following (?:[\w/-]+ ){0,3}(?:parameter|field|argument|attribute)s?\b"
    r"|(?:以下|下列)\w{0,6}(?:参数|字段)", re.IGNORECASE
)  # fmt: skip
MAX_TITLE_CHARS = 30
"""Maximum number of characters in a text that only announces parameters: "Query parameters"."""
_PARAMETER = re.compile(r"参数|param|argument", re.IGNORECASE)
_LOCATIONS = (
    ("path", _compile_words("<path>|路径")),
    ("query", _compile_words("<query>|查询(?:参数|字符串|条件)")),
    ("body", _compile_words("<body>|请求[体包]|<payload>|消息体|<json>|<form>")),
)
_ALLOWED_VALUES = re.compile(
    r"\benum(?:s|erat\w*)?\b|\b(?:allowed|possible|valid) values\b|枚举|取值", re.IGNORECASE
)
_LOGIN = re.compile(r"authenti[cs]ation|authori[sz]ation|认证|鉴权", re.IGNORECASE)
_PRESENCE = re.compile(
    r"(?:required|mandatory|optional|必填|必选|必传|可选|选填)\W*", re.IGNORECASE
)
"""A label that only says whether the parameters below it are required."""
_ARE_REQUIRED = re.compile(
    r"(?P<required>(?:required|mandatory)\b|必填|必选|必传)|optional\b|可选(?![值项范])|选填|非必填",
    re.IGNORECASE,
)
"""The start of a label that says whether the parameters below it are required: "Required parameters"."""
_NAMED_PARAMETERS = re.compile(
    r"(?:(?:required|mandatory|optional|request|body|query|path|url) )?(?:\w+ )?"
    r"(?:param(?:eter)?|argument|input)s?\W*"
    r"|(?:required|mandatory|optional) (?:\w+ )?fields?\W*"
    r"|(?:必填|必选|必传|可选|选填|请求|查询|输入)(?:参数|字段|项)\W*|参数\W*",
    re.IGNORECASE,
)
_VERB_FIRST = re.compile(
    r"[\W\d]*+(?:(?!(?:call|query|read|request|write) (?:permission|privilege|scope)s?\W*\Z)"
    r"(?:abort|activate|add|apply|approve|assign|attach|authorize|batch|bind|bulk"
    r"|calculate|call|cancel|change|check|clear|close|complete|confirm|copy|count|create|deactivate|delete"
    r"|detach|disable|download|edit|enable|execute|export|fetch|find|generate|get|grant|import|initiate|insert"
    r"|invite|invoke|issue|list|lock|login|logout|lookup|make|manage|merge|modify|move|open|patch|pay|place|post"
    r"|preview|publish|push|put|query|read|refresh|refund|register|reject|release|remove|rename|replace"
    r"|request|reset|resend|restore|retrieve|retry|return|revoke|rotate|run|save|search|send|set|show|sign"
    r"|start|stop|store|submit|subscribe|sync|transfer|trigger|unlock|update|upgrade|upload|upsert"
    r"|validate|verify|view|withdraw|write)(?:\b|(?-i:(?=[A-Z])))"
    r"|(?:查询|获取|设置|修改|更新|创建|新增|删除|添加|校验|检查|预检|授予|撤销|取消|移除|编辑|批量"
    r"|分配|管理(?!员)|(?:开通|申请)(?!(?:所需)?(?:权限|授权)(?:要求|说明|范围|项|点|信息)?\W*\Z))"
    r"|(?!(?:permission|privilege|scope|role)s\b)\w+ (?:an?|the|all)\b)",
    re.IGNORECASE,
)
"""The start of a name that begins with a verb, such as "Create order" or "Reconcile an account".

Titles such as "Read permissions" and 申请权限 do not count, because they announce permissions.
"""


class Announcements:
    """The headings and labels above the current block of a page."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._labels: list[str] = []
        """Labels since the last heading."""
        self._section = ""
        """The last label below the heading, if it announces headers, parameters or a response."""
        self._is_after_label = False
        self._is_after_heading = False

    def note_heading(self, level: int, heading: str) -> None:
        """Note a heading, which ends the sections of its level and of deeper levels."""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, heading))
        self._labels = []
        self._section = ""
        self._is_after_label = False
        self._is_after_heading = True

    def note_label(self, text: str) -> None:
        """Note a label for the next block. An empty text says that the next block has no label."""
        self._is_after_label = bool(text)
        self._is_after_heading = False
        if text:
            if _PRESENCE.fullmatch(text) and self._labels and _PRESENCE.fullmatch(self._labels[-1]):
                # "Optional" replaces "Required": both are below the same label, such as "Body".
                self._labels.pop()
            self._labels.append(text)
            self._section = text if _announces_parameters(text) else ""

    def end_announcement(self) -> None:
        """Record that the block after the last label or heading was read."""
        self._is_after_label = False
        self._is_after_heading = False

    def texts(self) -> list[str]:
        """Return the texts that announce the current block, the nearest first.

        These are the label of the block, if it has one, and the headings. A general label such as "Fields"
        is followed by the label before it, such as "Response".
        """
        labels = self._labels[:-3:-1] if self._is_after_label else []
        is_continued = (
            len(labels) == 2 and _is_neutral(labels[0]) and _announces_parameters(labels[1])
        )
        labels = labels if is_continued else labels[:1]
        return [*labels, *(text for _, text in reversed(self._headings))]

    def role(self) -> Role:
        """Return what the current block contains, according to the headings and labels above it.

        Below "Response", the headers, parameters and the body are those of the response.
        """
        texts = self.texts()
        decisive = [text for text in texts if not _is_neutral(text)]
        roles = [role for text in decisive if (role := role_of_title(text))]
        if not roles:
            return next(_roles(texts), "")
        nearest = _without_references(next(text for text in decisive if role_of_title(text)))
        is_weak = roles[0] in ("request", "headers") and not _STRONG_REQUEST.search(nearest)
        return "response" if is_weak and roles[1:2] == ["response"] else roles[0]

    def is_label_of_permissions(self) -> bool:
        """Return whether the nearest text about permissions is a label, not the name of an action."""
        texts = (text for text in self.texts() if role_of_title(text) == "permissions")
        return not begins_with_verb(next(texts, ""))

    def role_and_location(self) -> tuple[Role, str]:
        """Return the role and the location of a paragraph about a parameter.

        A label such as "Query" also counts if it is not right above the paragraph, because several
        paragraphs below the label may describe its parameters.
        """
        role = role_of_title(self._section) or self.role()
        return role, location_of(self._section) or self.location(role)

    def location(self, role: Role) -> str:
        """Return where the parameters of the current block are sent: path, query or body; may be empty."""
        if role not in ("request", ""):
            return ""
        return _location(self.texts())

    def announced_location(self) -> str:
        """Return where parameters are sent according to the text right above; empty if it does not say."""
        return location_of(self._text_right_above())

    def _text_right_above(self) -> str:
        """Return the heading or label right above the current block; empty if there is none."""
        is_right_below = self._is_after_heading or self._is_after_label
        return next(iter(self.texts()), "") if is_right_below else ""

    def is_announced(self) -> bool:
        """Return whether a short text right above announces parameters or the fields of a response.

        A longer text announces them if it begins with words such as "The following parameters".
        """
        text = self._text_right_above()
        if _ALLOWED_VALUES.search(text) or role_of_title(text) not in PARAMETER_ROLES:
            return False
        return len(text) <= MAX_TITLE_CHARS or _FOLLOWING.match(text) is not None

    def is_about_fields(self) -> bool:
        """Return whether the nearest text, such as "Fields" or "User", may announce an object's fields.

        The result is False for texts about parameters, and for texts with a role, such as "Error fields".
        """
        text = next(iter(self.texts()), "")
        return (
            bool(text)
            and not _PARAMETER.search(text)
            and not role_of_title(_FIELD_WORDS.sub("", text))
        )

    def says_required(self) -> bool | None:
        """Return whether the nearest text announces parameters that are all required.

        The result is False for optional parameters, and None if the text does not say.
        """
        stated = next(map(_ARE_REQUIRED.match, self.texts()[:1]), None)
        return stated["required"] is not None if stated else None

    def names_parameters(self) -> bool:
        """Return whether the nearest text is a label such as "Required parameters" or "Input"."""
        return any(map(_NAMED_PARAMETERS.fullmatch, self.texts()[:1]))

    def is_about_notifications(self) -> bool:
        """Return whether the nearest text announces what the platform sends to the caller's server."""
        return any(map(_NOTIFICATION.search, self.texts()[:1]))

    def is_about_values(self) -> bool:
        """Return whether the nearest text announces the values of fields, such as `Enumerated Values`."""
        return any(map(_ALLOWED_VALUES.search, self.texts()[:1]))

    def is_about_login(self) -> bool:
        """Return whether the nearest text is about how callers authenticate.

        If this text is a label such as "Table 1 Actions", which announces nothing, the heading above also
        counts.
        """
        texts = self.texts()
        is_caption = self._is_after_label and not any(map(role_of_title, texts[:1]))
        return any(map(_LOGIN.search, texts[: 2 if is_caption else 1]))


def _location(texts: Sequence[str]) -> str:
    matches = (name for text in texts for name, pattern in _LOCATIONS if pattern.search(text))
    return next(matches, "")


def location_of(title: str) -> str:
    """Return where parameters under a short title such as "Query (all)" are sent; may be empty."""
    return _location([title]) if len(title) <= MAX_TITLE_CHARS else ""


def _announces_parameters(label: str) -> bool:
    """Return whether a label announces headers, parameters or a response."""
    return role_of_title(label) in PARAMETER_ROLES


def _is_neutral(text: str) -> bool:
    """Return whether a text announces fields, but names neither request nor response.

    The text may announce fields in general (`Fields`) or the fields of a structure (`address 字段说明`).
    """
    if any(map(_NEUTRAL.fullmatch, parts_of(text))):
        return True
    return bool(caption_of(text).name) and not role_of_title(_FIELD_WORDS.sub("", text))


def _roles(texts: Sequence[str]) -> Iterator[Role]:
    for text in map(_without_references, texts):
        yield from (role for role, pattern in _ROLES if pattern.search(text))


def _without_references(text: str) -> str:
    """Return `text` without the clauses that `_REFERENCE` matches, such as "公共参数见…"."""
    return _REFERENCE.sub(" ", text)


def begins_with_verb(title: str) -> bool:
    """Return whether a title begins with a verb and so names an action: "Check the roles of a user"."""
    return _VERB_FIRST.match(title) is not None


def role_of_title(title: str) -> Role:
    """Return the role that a heading or label announces; empty if it announces none."""
    return next(_roles([title]), "")


def role_of_column(columns: Columns) -> Role:
    """Return the role that the title of the name column states; empty if there is none.

    A title that states a location, such as "Query parameter", states the role `request`.
    """
    title = columns.title("name")
    matches = (
        role for role, pattern in _ROLES if role in _ROLES_BY_COLUMN and pattern.search(title)
    )
    return next(matches, "request" if location_of_column(columns) else "")


def is_titled_parameters(columns: Columns) -> bool:
    """Return whether the title of the name column says that the rows are parameters."""
    return _PARAMETER.search(columns.title("name")) is not None


def location_of_column(columns: Columns) -> str:
    """Return where parameters are sent according to the title of the name column; may be empty.

    The result is empty for the title "Path", because a column of dotted field names may have that title.
    """
    title = columns.title("name")
    return "" if title.lower() in ("path", "路径") else _location([title])

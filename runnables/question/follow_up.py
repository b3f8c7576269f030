"""A follow-up -> a question that stands by itself, without a model: by its shape, and by what was said.

A follow-up leaves its subject out. What it does say is then a part of an interface (错误码, "required
parameters"), something that is done with one (取消, "cancel"), or what the conversation already speaks
of. A text that says anything else brings a subject of its own, and stays as it is: memory must not
make an off-topic question sound like the platform.
"""

import re
from collections.abc import Iterable, Sequence

from ingestion.text.language import COMMON_ZIPF, detect_language, zipf_frequency
from ingestion.text.words import split_words, stem, vocabulary_words
from runnables.question.extract_details import error_codes, extract_details
from runnables.question.topic_scorer import DEVELOPER_WORDS
from schemas.question import Turn

MAX_ELLIPTICAL_WORDS = {"zh": 14, "en": 7}
"""Words and single Chinese characters of a text that leaves its subject out without any sign of it."""

MAX_TEXT_CHARS = 4_000
"""Characters, with what was pasted; who says more has said what it is about."""

MAX_NEW_WORDS = 2
"""Words of its own that may stand around a pronoun ("can I schedule it for midnight")."""

MAX_CLAUSE_CHARS = 200
"""Characters of an earlier question's clause that are looked at."""

MAX_SUBJECT_WORDS = {"zh": 12, "en": 10}
"""Words of an earlier question that become the subject of a later one."""

_ASPECTS = """
error errors code codes parameter parameters param params field fields argument header headers body
payload request response return required optional mandatory default permission package scope example
examples sample snippet limit limits maximum minimum max min rate quota type format length version
url path endpoint method timeout retry idempotent pagination page size status reason cause meaning
cancel undo revert withdraw change update delete call fail failure happen exceed cost charge allow
support need require use set raise higher lower increase fix handle solve try check send get receive
work mean differ difference step batch effect last arrive python java php javascript node golang
curl bash often long late soon else instead again

参数 字段 入参 出参 报文 错误 错误码 报错 异常 返回 返回值 返回码 响应 请求 请求体 请求头 权限
权限包 包 示例 例子 样例 举例 必填 必传 选填 可选 默认 默认值 类型 格式 长度 单位 取值 枚举 上限
下限 限制 限流 频率 频控 地址 路径 方法 版本 文档 代码 超时 重试 重复 幂等 分页 批量 部分 全部 状态
原因 含义 意思 说明 区别 步骤 流程 注意 取消 撤销 撤回 修改 更改 更新 删除 调用 使用 失败 成功 处理
解决 收费 费用 支持 需要 生效 次数 时间 时候 最多 最少 更多 完整 具体 详细 办 申请 审核 下载 上传
提交 查看 条件 前提 要求 自动 几点
"""
"""What is asked of an interface whose name was said before: its parts, and what is done with it."""

_ASIDE = """
please does did ever ask tell show give explain want would could should know many much few there
here also too then than next after before first another else happen happens only some any every each
still already

怎么 怎样 怎么样 如何 怎么办 咋办 什么 哪些 哪个 哪里 几个 几次 几天 多少 多久 多长 一次 每次 一下
这个 那个 这些 那些 这样 那样 其中 其他 别的 另外 还有 然后 如果 要是 那么 的话 只要 直接 有没有
能不能 可不可以 是不是 需不需要 请问 再问 想问 知道 告诉 介绍 解释 呢 吗 吧 呀 它们 接口 刚才 刚刚
上面 前面 之后 以后 为啥 为什么
"""
"""What frames a question, and what it points with."""

_OPENER = re.compile(
    r"(?:那么|那|然后|还有|另外|再问(?:下|一下)|顺便问(?:下|一下)|请问|对了)(?!个|些|样|里|边|种)"
    r"[\s，,、：:]*"
    r"|(?:谢谢|多谢|好的)(?:你|您|啦|了)*[\s，,]*"
    r"|(?:ok|okay|thanks|thx)(?![A-Za-z])[\s,]*"
    r"|(?:and|but|then|also|so|or|well|now|what about|how about)\b[\s,]*",
    re.I,
)
_POINTER = re.compile(
    r"它们?|这个|那个|该接口|此接口|这接口|这样|上面|前面|刚才"
    r"|\b(?:it|its|this|that|these|those|they|them|their|one|ones|there|same|above)\b",
    re.I,
)
_ACTING = re.compile(
    r"(?:怎么|如何|怎样|能|可以|要|会)[^，,。]{0,6}(?:它|这个|那个)"
    r"|\b(?:how|can|could|should|may|must) (?:do |can |should |to )?(?:i|we) \w+"
    r" (?:it|this|that|them|these|those)\b",
    re.I,
)
"""How or whether one does something with what is pointed at: "can I cancel it", 怎么取消它."""
_ELLIPSIS = re.compile(
    r"呢\s*[？?。!！]*$|^(?:也|还能|还可以|只)|\b(?:too|as well|instead|else)\b", re.I
)
_IN_FRONT = re.compile(r"(?:它|(?:这个|那个|该|此|这)(?=接口)|这个(?=的|有|需|支|能|怎|会|要))")
_NAME = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+|\b[a-z]+[A-Z][A-Za-z0-9]*")
_CLAUSE = re.compile(r"[，,。.!！；;、~～\n]+|\s{1,9}-{1,3}\s")
_ASKING = re.compile(
    r"^(?:请问|我?想(?:要|把|知道)?|我们|怎么样?|如何|怎样|能不能|可以|有没有|什么是|(?=把))+"
    r"|(?:接口)?(?:应该|需要|到底|都|是|要|该|可以|能)*(?:怎么样?|如何|怎样|什么|哪些|哪个|哪里|哪|有哪些|多少|多久|几个)"
    r"[^，,。]{0,4}$|[吗呢吧啊？?\s]+$"
    r"|^(?:(?:please|can|could|how|what|which|when|where|why|who|many|much|often|do|does|did|is|are|was"
    r"|may|should|will|would|i|we|you|the|a|an|to|of)\b[\s,]*)+|\?+$",
    re.I,
)

_TALK = """
谢谢 多谢 感谢 谢啦 谢了 辛苦 辛苦了 麻烦你了 好的 好滴 好嘞 好吧 好哒 知道了 明白 明白了 了解
了解了 懂了 收到 清楚了 搞定 搞定了 解决了 可以了 没问题 没问题了 没事 没事了 不用了 没有了 没了
先这样 就这样 你好 您好 嗨 哈喽 早上好 下午好 晚上好 早安 晚安 再见 拜拜 回头见 下次见 不客气 太好了
太棒了 很棒 真棒 厉害 牛 牛逼 给力 赞 完美 优秀 不错 有用 有帮助 有道理 原来如此 在吗 在么 哈哈
哈哈哈 嘿嘿 嗯 嗯嗯 哦 噢 行 好 对 是的 可以

thank thanks thank_you thankyou thx tks ty cheers appreciate appreciated grateful ok okay okey k kk
alright got_it gotcha understood i_see makes_sense sounds_good will_do no_problem np no_worries
nevermind never_mind nvm hi hello hey howdy good_morning good_afternoon good_evening good_night
good_day good_job good_work good_stuff how_are_you bye goodbye see_you see_ya later have_a_nice_day
have_a_good_day have_a_great_day have_a_good_one have_a_nice_weekend great awesome perfect excellent
amazing brilliant wonderful fantastic cool nice lovely neat well_done you_rock you_are_the_best
you're_the_best helpful love_it yes yep yeah yup no nope sure right exactly done that_works it_works
it_works_now that_helps that_helped that's_all that_is_all that's_it lol haha hahaha wow welcome
problem_solved solved
"""
"""What is said where nothing is asked; `_` is a blank."""

_AROUND_TALK = """
非常 十分 特别 真的 真是 实在 你 你们 您 大家 了 啦 啊 呀 哦 呢 哈 嘛 吧 的 我 太 很 真 多 先 都 就
这 这个 那 回答 解答 帮助 帮忙 助手 小助手 机器人 老师 大佬 亲 一下 没有 问题 挺 还 是 咯 哟 呐 这下
终于 又 看起来 其他 别的

so very really much lot lots many you your u for the this that that's thats was is it its it's all
now a an and i i'm im my me we to too of by help answer answers information info quick response
support man mate buddy guys everyone bot there again then most million indeed just what will be one
day super pretty quite question questions more other further have explanation explaining clear time
"""
"""What may stand around it."""


def _any_of(block: str) -> re.Pattern[str]:
    """A pattern for each of the words in `block`, longer ones first; Latin ones only whole."""
    phrases = {w.replace("_", " ") for w in block.split()}
    words = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(
        "|".join(rf"(?<![A-Za-z']){w}(?![A-Za-z'])" if w.isascii() else w for w in words),
        re.IGNORECASE,
    )


_TALKING = _any_of(_TALK)
_FILLING = _any_of(_AROUND_TALK)


def is_small_talk(text: str) -> bool:
    """Whether `text` asks nothing: thanks, a greeting, praise, a yes, in either language or both."""
    if len(text) > 200:
        return False
    talk = text.replace("’", "'")
    if not re.search(r"\w", talk):
        return _is_smile(talk)
    rest, found = _TALKING.subn(" ", talk)
    if re.search(r"[?？]", talk):
        return found > 0 and not re.search(r"\w", rest)
    if re.search(r"[?？]", talk):
        return found > 0 and not re.search(r"\w", rest)
    return found > 0 and not re.search(r"\w", _FILLING.sub(" ", rest))


def make_standalone(text: str, history: Sequence[Turn]) -> str:
    """`text` with the subject that it leaves out in front; as it is where it stands by itself."""
    if (
        len(text) > MAX_TEXT_CHARS
        or not (focus := conversation_subject(history))
        or _names_subject(text)
    ):
        return text
    said = strip_small_talk(text)
    rest = _strip_opener(said)
    if not _omits_subject(rest, _OPENER.match(said) is not None, focus, history):
        return text
    return _insert_subject(focus, rest)


def conversation_subject(history: Iterable[Turn]) -> str:
    """What a conversation is about by now: the last API, or the subject of a later question."""
    focus = ""
    for turn in history:
        stays = focus and turn.question.startswith(focus)
        focus = turn.api_name or (focus if stays else _subject(turn.question)) or focus
    return focus


def strip_small_talk(text: str) -> str:
    """`text` without the thanks that it begins with."""
    rest = text.strip()
    while (clause := _CLAUSE.search(rest)) and is_small_talk(rest[: clause.start()]):
        rest = rest[clause.end() :].lstrip()
    return rest or text.strip()


def new_words(text: str, known: str) -> list[str]:
    """The telling words of `text`, as stems, that neither `known` nor any interface's parts hold."""
    held = {*_stems(known), *_FRAME}
    return [word for word in dict.fromkeys(_content_stems(text)) if word not in held]


def history_text(history: Iterable[Turn]) -> str:
    """All that was said in `history`."""
    return "\n".join(
        part
        for turn in history
        for part in (turn.question, turn.answer, turn.api_name, turn.api_url)
        if part
    )


def _omits_subject(rest: str, opened: bool, focus: str, history: Sequence[Turn]) -> bool:
    """Whether `rest`, a text without its opener, needs `focus` to be understood."""
    words = set(_stems(rest))
    if not words or set(_stems(focus)) <= words:
        return False
    points = _POINTER.search(rest) is not None
    prose = _NAME.sub(" ", rest)
    new = new_words(prose, history_text(history))
    if points:
        new = [word for word in new if word not in _TRADE]
    if opened or points or _ELLIPSIS.search(rest):
        return len(new) <= (MAX_NEW_WORDS if points and _ACTING.search(prose) else 0)
    asked = {word for turn in history for word in _content_stems(turn.question)} - _FRAME
    is_short = len(words) <= MAX_ELLIPTICAL_WORDS[detect_language(rest)]
    return is_short and prose == rest and not new and not asked & words


def _names_subject(text: str) -> bool:
    """Whether it names what it is about: a path, a trace id, an error that was pasted, a code."""
    pasted = extract_details(text)
    failed = pasted.response is not None and pasted.error
    return bool(pasted.paths or pasted.trace_id or failed or error_codes(pasted.prose))


def _insert_subject(focus: str, rest: str) -> str:
    """`focus` in the place where `rest` points, or in front of it."""
    if detect_language(rest) == "en":
        return f"{focus}: {rest}"
    if pointer := _IN_FRONT.match(rest):
        return f"{focus}{rest[pointer.end() :]}"
    part = rest.rstrip("呢？?。 ")
    if part and all(stem(word) in _PARTS for word in split_words(part)):
        return f"{focus}的{part}"
    return f"{focus}：{rest}"


def _strip_opener(text: str) -> str:
    rest = text
    while opener := _OPENER.match(rest):
        rest = rest[opener.end() :]
    return rest if len(split_words(rest)) > 1 or detect_language(rest) == "zh" else text


def _subject(question: str) -> str:
    """What `question` is about: its first telling clause, without the words that ask."""
    prose = extract_details(question).prose
    for clause in _CLAUSE.split(prose[:MAX_TEXT_CHARS]):
        if [word for word in _content_stems(clause) if word not in _ASIDES]:
            subject = _ASKING.sub("", _ASKING.sub("", clause.strip()[:MAX_CLAUSE_CHARS])).strip(
                " ：:，,"
            )
            language = detect_language(clause)
            if len(split_words(subject)) <= MAX_SUBJECT_WORDS[language]:
                return subject
            words = [
                word for word in split_words(subject) if stem(word) in set(_content_stems(subject))
            ]
            return ("" if language == "zh" else " ").join(words[: MAX_SUBJECT_WORDS[language]])
    return ""


def _content_stems(text: str) -> list[str]:
    """The words of `text`, as stems, that are not everybody's all the time."""
    words = vocabulary_words(text)
    return [
        stem(w) for w in words if len(w) > 1 and w.isalpha() and zipf_frequency(w) < COMMON_ZIPF
    ]


def _stems(text: str) -> list[str]:
    return [stem(word) for word in vocabulary_words(text)]


def _is_smile(text: str) -> bool:
    """Whether it is a smile and nothing else; a bare question mark asks."""
    return not re.search(r"[?？]", text) and any(ord(c) > 0x2190 and c.isprintable() for c in text)


_PARTS = frozenset(stem(word) for word in _ASPECTS.split())
_ASIDES = frozenset(stem(word) for word in _ASIDE.split())
_FRAME = _PARTS | _ASIDES
_TRADE = frozenset(map(stem, DEVELOPER_WORDS))

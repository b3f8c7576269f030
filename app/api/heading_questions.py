"""Turns headings into natural questions, depending on the grammatical form of the heading."""

import re
from typing import Literal

from prompts.user_text import user_text
from schemas.choices import Language

_Form = Literal["question", "how", "works"]
"""The form of a heading: a question, an action (How do I ...?) or a process (How does ... work?)."""

_STEP = re.compile(
    r"(?:第[一二三四五六七八九十\d]+[步章节]|step \d+|\d+(?:\.\d+)*\.?)[：:、\s]+", re.I
)

_VERBS = (
    "add|authenticate|authorize|build|call|choose|configure|connect|convert|create|delete|deploy|disable|"
    "download|enable|encrypt|generate|get|handle|implement|install|integrate|invoke|manage|migrate|"
    "publish|receive|refresh|register|remove|retrieve|revoke|rotate|run|send|sign|start|subscribe|"
    "switch|upload|use|validate|verify"
)
_NOT_VERBS = (
    "about|after|all|and|as|at|before|by|for|from|how|if|in|is|not|of|on|or|see|the|to|what|when|why|"
    "with|without"
)
_NOT_GERUNDS = "existing|following|missing|pending|remaining|string|thing|warning"

_CHINESE_VERBS = (
    "获取|取得|拉取|申请|创建|新建|注册|配置|设置|调用|接入|使用|处理|查询|刷新|计算|检查|校验|验证|"
    "排查|订阅|"
    "发送|接收|上传|下载|删除|更新|修改|添加|安装|启用|开通|绑定|对接|生成|导出|导入|升级|迁移|编写|选择|实现|部署|提交|切换"
)
_CHINESE_NOUNS = (
    "准备|时限|限制|说明|指南|清单|要求|列表|记录|状态|接口|参数|示例|日志|前|后|时|工具|权限|页面"
)
_PROCESSES = "流程|步骤|顺序|方式|方法|规则|算法|机制|过程"

_FORMS: dict[Language, tuple[tuple[_Form, re.Pattern[str]], ...]] = {
    "en": (
        (
            "question",
            re.compile(
                r"((?:(?:what|why|when|where|which|who|how) )?(?:can|do|does|is|are|should|will) .+?)\??",
                re.I,
            ),
        ),
        ("how", re.compile(r"how to (.+)", re.I)),
        ("works", re.compile(rf"((?!(?:{_NOT_GERUNDS})\b)\w{{3,}}ing\b.*)", re.I)),
        (
            "how",
            re.compile(
                rf"((?:{_VERBS}) .+|(?!(?:{_NOT_VERBS})\b)[a-z]+ (?:up |out )?(?:an?|the|your) .+)",
                re.I,
            ),
        ),
    ),
    "zh": (
        (
            "question",
            re.compile(r"(.*(?:如何|怎么|怎样|为什么|是否|能否|什么是).+?|.+[吗呢])[？?]?"),
        ),
        ("works", re.compile(rf"(.+(?:{_PROCESSES}))")),
        ("how", re.compile(rf"((?:{_CHINESE_VERBS})(?!.*的)(?!.*(?:{_CHINESE_NOUNS})$).+)")),
    ),
}
"""The forms by language. The headings of a language without forms are not rewritten."""

_LINKS = re.compile(
    r"see also|related|next steps?|further|references?\b|相关|下一步|参考|另见", re.I
)

_CAPITALISED = re.compile(r"\b[A-Z][a-z]*\b(?![A-Z])")


def as_question(heading: str, language: Language) -> str | None:
    """Return a question in `language` that the section below `heading` answers.

    None if the heading has no form that can be rewritten, such as a plain noun, or is in another language.
    """
    heading = _STEP.sub("", heading.strip(" .。:："), count=1)
    for form, pattern in _FORMS.get(language, ()):
        if match := pattern.fullmatch(heading):
            name = match[1] if form == "question" else _as_words(match[1], language)
            return user_text(language).suggestions[form].format(name=name)
    return None


def is_subject(heading: str) -> bool:
    """Return whether `heading` names a subject: it is not empty and does not introduce a list of links."""
    return bool(heading) and not _LINKS.match(heading)


def about(title: str, language: Language) -> str:
    """Return a question about the page or section called `title`."""
    question = as_question(title, language)
    return question or user_text(language).suggestions["about"].format(
        name=_as_words(title, language)
    )


def _as_words(heading: str, language: Language) -> str:
    """Return `heading` as part of a sentence, without the capitals of an English title."""
    # Nouns of other languages may have capitals.
    if not heading.isascii() or language not in _FORMS:
        return heading
    return _CAPITALISED.sub(lambda match: match[0].lower(), heading)

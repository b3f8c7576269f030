"""Words that make a sentence a question or a request, whatever it is about.

A closed class. Questions hold them far more often than everyday language does, so that frequency alone
would take them for a topic.
"""

from ingestion.everyday_words import COMMON_ZIPF, zipf_frequency

_ENGLISH_QUESTION_WORDS = """
a additionally also am any are be been being by can could did do does doing done for from get had has
have having hello help hi how i if is it know like look may me might must my need needs of our please
possible provide shall should some tell than thank thanks that the their there these they this those to
us want was we were what when where whether which who whom whose why will with would you your
"""

_CHINESE_QUESTION_WORDS = """
哪 哪个 哪些 哪儿 哪里 哪种 哪天 哪年 哪一 哪一年 哪一个 哪家 多少 多久 多大 多长 多长时间 几 几个 几次
几种 谁 什么 什么样 什么时候 为什么 为何 何时 何 怎么 怎么样 怎么办 怎样 怎 如何 是否 是不是 有没有 能不能
能否 可不可以 可否 要不要 会不会 吗 呢 吧 么 咋 啥 请 请问 你好 您好 谢谢 帮 帮忙 帮我 麻烦 想 想要 需要
可以 能 能够 应该 知道 告诉 找
"""

QUESTION_WORDS = frozenset(_ENGLISH_QUESTION_WORDS.split()) | frozenset(
    _CHINESE_QUESTION_WORDS.split()
)


def is_content_word(word: str) -> bool:
    """Whether `word` can carry a topic: no number, single letter, question word or very common one."""
    is_letter = len(word) == 1 and word.isascii()
    common = word in QUESTION_WORDS or zipf_frequency(word) >= COMMON_ZIPF
    return any(map(str.isalpha, word)) and not is_letter and not common

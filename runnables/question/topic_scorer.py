"""Scores of how likely a question is about the documents, for a topic gate that needs no model.

The score is the log-likelihood ratio of the question's words under two unigram language models. The
first is the model of the documents, smoothed with everyday language (Jelinek-Mercer; Zhai & Lafferty, "A
Study of Smoothing Methods for Language Models", 2004). The second is everyday language alone (the word
lists of `wordfreq`). Words that are more frequent in the documents raise the score, words that the
documents do not contain lower it, and the most common words are ignored.
docs/decisions/0002-topic-gate.md has measurements on platforms that it was not tuned on.
"""

import math
from collections.abc import Callable, Iterable

from ingestion.text.language import COMMON_ZIPF, zipf_frequency
from ingestion.text.words import vocabulary_words, words_within

DOCUMENT_WEIGHT = 0.3
"""Weight of the documents in the language model that mixes them with everyday language."""

DEVELOPER_SHARE = 1e-3
"""Minimum share of the documents' words that is assumed for each of `DEVELOPER_WORDS`."""

WordCounts = Callable[[Iterable[str]], dict[str, int]]
"""Function that returns the number of occurrences in the documents for each word that occurs there."""

_ENGLISH_DEVELOPER_WORDS = """
account api apis app application async asynchronous auth authentication authorization backend
base64 batch bug bugs cache callback callbacks certificate client code concurrency config console
credential credentials cron curl cursor database debug debugging decode decrypt demo deploy deployment
deprecated deprecation dev developer developers docs documentation domain encode encoding encrypt
encryption endpoint endpoints enum error errors event events exception exceptions fail failed failing
fails failure field fields frontend gateway hash header headers hmac http https idempotency idempotent
integrate integrated integrating integration ip java javascript job jobs json key keys latency limit
limits log logging login logs message messages migrate migration mock node notification notifications
oauth package page pages pagination param parameter parameters params parse payload permission
permissions php poll polling prod production push python queue quota quotas rate request requests
response responses retries retry retrying sandbox scope scopes script sdk secret server servers sign
signature signing simulate sms ssl staging status subscribe subscription sync synchronous test testing
tests throttle throttled throttling timeout timeouts timestamp timezone tls token tokens trace upgrade
uri url urls utf version versions webhook webhooks whitelist xml
"""

_CHINESE_DEVELOPER_WORDS = """
接口 参数 字段 入参 出参 报文 请求 响应 返回 返回值 回调 推送 订阅 拉取 轮询 调用
调 对接 接入 联调 集成 开发 开发者 文档 示例 签名 验签 加签 密钥 秘钥 令牌 授权
鉴权 认证 权限 沙箱 测试 生产 环境 正式 线上 上线 域名 网关 白名单 证书 限流 频率
频控 并发 超时 重试 幂等 重复 分页 翻页 游标 批量 异步 同步 增量 全量 报错 错误
错误码 异常 失败 状态码 日志 排查 调试 链路 版本 废弃 升级 迁移 兼容 编码 解码
时间戳 时区 加密 解密 哈希 数据库 缓存 队列 脚本 定时 任务 代码 服务器 服务端
客户端 后端 前端 应用 账号 控制台 后台 配置 消息 通知 事件 枚举 必填 类型 格式
长度 字符串
"""

DEVELOPER_WORDS = frozenset(_ENGLISH_DEVELOPER_WORDS.split()) | frozenset(
    _CHINESE_DEVELOPER_WORDS.split()
)
"""Words that developers use on every platform, whether or not its documents contain them."""

_ENGLISH_QUESTION_WORDS = """
a additionally also am any are be been being by can could did do does doing done for from get had has
have having hello help hi how i if is it know like look may me mean meaning means might must my need
needs of our please
possible provide shall should some tell than thank thanks that the their there these they this those to
us want was we were what when where whether which who whom whose why will with would you your
"""

_CHINESE_QUESTION_WORDS = """
哪 哪个 哪些 哪儿 哪里 哪种 哪天 哪年 哪一 哪一年 哪一个 哪家 多少 多久 多大 多长 多长时间 几 几个 几次
几种 谁 什么 什么样 什么时候 为什么 为何 何时 何 怎么 怎么样 怎么办 怎样 怎 如何 是否 是不是 有没有 能不能
能否 可不可以 可否 要不要 会不会 意思 含义 吗 呢 吧 么 咋 啥 请 请问 你好 您好 谢谢 帮 帮忙 帮我 麻烦
想 想要 需要 可以 能 能够 应该 知道 告诉 找
"""

QUESTION_WORDS = frozenset(_ENGLISH_QUESTION_WORDS.split()) | frozenset(
    _CHINESE_QUESTION_WORDS.split()
)
"""Words that make a sentence a question or a request, whatever it is about.

The list is complete, because these words are a closed class. They are much more frequent in questions
than in everyday language, so by frequency alone they would look like a topic.
"""


def is_uncommon_word(word: str) -> bool:
    """Return whether `word` is neither a number, nor a single letter, nor one of the most common words."""
    is_letter = len(word) == 1 and word.isascii()
    return any(map(str.isalpha, word)) and not is_letter and zipf_frequency(word) < COMMON_ZIPF


def is_content_word(word: str) -> bool:
    """Return whether `word` can indicate a topic, that is, is uncommon and not a question word."""
    return word not in QUESTION_WORDS and is_uncommon_word(word)


class TopicScorer:
    """Scores texts against the documents of one collection."""

    def __init__(self, word_counts: WordCounts, total: int) -> None:
        """`total` is the number of words in the documents, counting repetitions."""
        self._word_counts = word_counts
        self._total = max(total, 1)

    def score(self, text: str) -> float:
        """Return the log-likelihood ratio of `text`, in nats."""
        return sum(self.word_scores(text).values())

    def word_scores(self, text: str) -> dict[str, float]:
        """Return the log-likelihood ratio (natural logarithm) of each uncommon word of `text`.

        A Chinese word that the documents do not contain is replaced by the words within it that they do.
        """
        words = [word for word in dict.fromkeys(vocabulary_words(text)) if is_uncommon_word(word)]
        counts = self._word_counts(words)
        parts = {word: words_within(word) for word in words if word not in counts}
        counts |= self._word_counts([part for each in parts.values() for part in each])
        scored = (
            [part for part in parts.get(word, ()) if part in counts] or [word] for word in words
        )
        return {word: self._ratio(word, counts.get(word, 0)) for each in scored for word in each}

    def _ratio(self, word: str, count: int) -> float:
        share = count / self._total
        if word in DEVELOPER_WORDS:
            share = max(share, DEVELOPER_SHARE)
        everyday = 10 ** (zipf_frequency(word) - 9)
        return math.log(1 - DOCUMENT_WEIGHT + DOCUMENT_WEIGHT * share / everyday)

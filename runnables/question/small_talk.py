"""Recognition of small talk, such as thanks and greetings, in Chinese and English."""

import re

CLAUSE_END = re.compile(r"(?:[，,。!！；;、~～\n]|\.(?![a-z0-9]))+|\s{1,9}-{1,3}\s")
"""Matches the end of a clause; a full stop within a name such as `isv.invalid-sign` is not one."""

MAX_SMALL_TALK_CHARS = 200
"""Maximum length of small talk, in characters."""

_SMALL_TALK = """
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
"""Words and phrases that are small talk by themselves; `_` stands for a space."""

_FILLER = """
非常 十分 特别 真的 真是 实在 你 你们 您 大家 了 啦 啊 呀 哦 呢 哈 嘛 吧 的 我 太 很 真 多 先 都 就
这 这个 那 回答 解答 帮助 帮忙 助手 小助手 机器人 老师 大佬 亲 一下 没有 问题 挺 还 是 咯 哟 呐 这下
终于 又 看起来 其他 别的

so very really much lot lots many you your u for the this that that's thats was is it its it's all
now a an and i i'm im my me we to too of by help answer answers information info quick response
support man mate buddy guys everyone bot there again then most million indeed just what will be one
day super pretty quite question questions more other further have explanation explaining clear time
"""
"""Words that may surround small talk."""


def _phrase_pattern(block: str) -> re.Pattern[str]:
    """Return a pattern that matches the phrases in `block`; English ones match whole words only."""
    phrases = {word.replace("_", " ") for word in block.split()}
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(
        "|".join(
            rf"(?<![A-Za-z']){phrase}(?![A-Za-z'])" if phrase.isascii() else phrase
            for phrase in ordered
        ),
        re.IGNORECASE,
    )


_SMALL_TALK_PATTERN = _phrase_pattern(_SMALL_TALK)
_FILLER_PATTERN = _phrase_pattern(_FILLER)


def is_small_talk(text: str) -> bool:
    """Return whether `text` consists of thanks, a greeting, praise or a confirmation."""
    if len(text) > MAX_SMALL_TALK_CHARS:
        return False
    text = text.replace("’", "'")
    if not re.search(r"\w", text):
        return _is_emoji(text)
    rest, matches = _SMALL_TALK_PATTERN.subn(" ", text)
    if not re.search(r"[?？]", text):
        rest = _FILLER_PATTERN.sub(" ", rest)
    return matches > 0 and not re.search(r"\w", rest)


def strip_small_talk(text: str) -> str:
    """Return `text` without the small talk at its beginning."""
    rest = text.strip()
    while (clause := CLAUSE_END.search(rest)) and is_small_talk(rest[: clause.start()]):
        rest = rest[clause.end() :].lstrip()
    return rest or text.strip()


def _is_emoji(text: str) -> bool:
    """Return whether `text` contains a symbol such as an emoji and no question mark."""
    return not re.search(r"[?？]", text) and any(
        ord(character) > 0x2190 and character.isprintable() for character in text
    )

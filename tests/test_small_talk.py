"""Thanks and greetings are distinguished from questions."""

from runnables.conversation.small_talk import is_small_talk

SMALL_TALK = """
谢谢
好的，谢谢！
thx, got it 👍
明白了
多谢，辛苦了
ok
OK!
好的好的
嗯嗯，知道了
太好了，解决了
👍
🙏🙏
你好
在吗？
在吗，请问一下
请问一下
打扰了，想请教个问题
有人吗
有人在吗？
没人理我吗
hello anyone there?
hi, is anybody there?
excuse me
您好，早上好
非常感谢您的帮助
搞定了，谢谢大佬
没问题了，再见
收到收到
哈哈哈
厉害了
谢谢，没有其他问题了
原来如此，懂了
好滴，先这样
那就这样吧，拜拜
Thanks a lot!
thank you so much for your help
Great, that helps
perfect, thanks
cool
Hello
hi there
good morning!
bye
See you later
no more questions, thank you
That's all for now, cheers
you're the best!
awesome, it works now
yes
ok thanks 谢谢
Got it — makes sense.
I see, thanks
Nice one, mate
好的 thanks
很有帮助，谢谢你
:) thanks
Understood.
"""

NO_SMALL_TALK = """
谢谢，那错误码呢
好的，那怎么取消？
ok, and the error codes?
thanks, how do I cancel it?
got it. in Python?
明白了，权限包呢
你好，怎么发货
hello, what does 41022 mean?
好的，还有参数
嗯，超时了怎么办
不错，但是报错了
thanks but it fails
great, which package does it need
ok so is it idempotent
对，但是返回 40014
可以重试吗
可以取消吗
好用吗，限流多少
没有权限
没有返回
好像不行
不行
hi, order ship
错误码
权限包
in Python?
那呢
？
???
41022
{"code": "41022"}
/dop/api/v1/order/ship
yes, show me an example
no, I mean the v2 one
what is it?
how many
what time is it in Beijing
今天天气怎么样
讲个笑话
可以了吗，退款
right, but what about refunds
sure, what next
done with signing, next step
再问一下，签名
请问一下，怎么退款
有人用过沙箱吗
还是不行
still doesn't work
is that all the parameters
thanks. trace_id: 7301982211763524801
it works in sandbox but not in production
nice, 那库存呢
行，怎么对账
什么
why
how
more details
help
我的订单没了
退款好了没有
is that right?
is it done?
有用吗
行吗？
thanks how do I cancel it
谢谢那错误码呢
"""


def test_small_talk_is_recognised() -> None:
    talk, asking = SMALL_TALK.strip().splitlines(), NO_SMALL_TALK.strip().splitlines()
    assert len(talk) >= 40
    assert len(asking) >= 40
    assert [text for text in talk if not is_small_talk(text)] == []
    assert [text for text in asking if is_small_talk(text)] == []

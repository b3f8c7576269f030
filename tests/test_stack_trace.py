"""The frames of stack traces are removed from questions."""

import pytest

from runnables.question.stack_trace import remove_frames


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Error: read ECONNRESET\n    at Socket.read (node:internal/stream:217:20) {\n"
            "  errno: -104, code: 'ECONNRESET', syscall: 'read' }",
            "Error: read ECONNRESET { code: 'ECONNRESET' }",
        ),
        ("Error: hang up at async run (/app/a.js:3:4) at file:///b.mjs:1:2", "Error: hang up"),
        ("Error: hang up\nrun@https://x.dev/a.js:1:20\nwhy", "Error: hang up why"),
        (
            "Traceback (most recent call last):\n"
            '  File "app.py", line 12, in <module>\n    client.orders.update("ord_1")\n'
            '  File "/lib/orders.py", line 8, in update\n    raise Locked("no")\n    ^^^^^\n'
            "acme.errors.Locked: It is locked\nwhat now?",
            "Locked: It is locked what now?",
        ),
        ('Traceback (most recent call last): File "a.py", line 1, in f x() File "b.py", line 2 no',
         "no"),
        (
            "com.acme.ApiException: It is locked\n\tat com.foo.Bar(Bar.java:12) ~[a.jar:1]\n"
            "Caused by: java.net.SocketException: hang up\n\t... 12 more",
            "ApiException: It is locked Caused by: SocketException: hang up",
        ),
        (
            "System.Exception: locked\n   at Foo.Bar(String x) in C:\\a b\\Foo.cs:line 42\n"
            "   at Foo.Baz[T](Int32 y)\nwhy",
            "System.Exception: locked why",
        ),
        (
            "panic: It is locked\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:33 +0x1d\n"
            "created by main.run in goroutine 7\n\t/app/main.go:3 +0x1",
            "panic: It is locked",
        ),
        ("goroutine 1 [running]: main.go:33 +0x1d locked", "locked"),
        ("a.rb:5:in `f': It is locked (Acme::Error)\n\tfrom a.rb:9:in `<main>'",
         "It is locked (Acme::Error)"),
        ("It is locked\n#0 /var/www/a.php(12): Foo->bar()\n#1 {main}", "It is locked"),
        ("It is locked #0 {main}", "It is locked"),
        ("error at java.lang.Thread.run(Native Method) why?", "error why?"),
        ("It is locked at [].forEach (<anonymous>)", "It is locked"),
        ("It is locked\n... 3 common frames omitted", "It is locked"),
        ("locked at Foo.Bar(String x) in /a/Foo.cs:line 4 at Foo.Baz()", "locked"),
        ("at com.foo.Bar(Bar.java:12)", "at com.foo.Bar(Bar.java:12)"),
    ],
)  # fmt: skip
def test_errors_are_kept_without_frames(text: str, kept: str) -> None:
    assert " ".join(remove_frames(text).split()) == kept


@pytest.mark.parametrize(
    "text",
    [
        "Can I pick up at noon (12:00) or at 10:30:00, 2025-11-02T10:11:12Z?",
        "It fails at checkout.\nat the moment (see docs) I retry",
        "A request at https://api.x.dev:8080/v1/orders fails",
        "Is order #12 (3 items): open? created by me",
        '{"errno": -104, "syscall": "read"}',
        "Why does it fail at orders.create(Order order)",
        "I moved a, b ... 12 more\ncreated by the webhook",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert remove_frames(text) == text


@pytest.mark.parametrize(
    "unit",
    ["at ", "at a(", "a.", "a:", ":1", "/a", 'File "a", line 1 ', "\n  a", "#1 a(1): ", "x.go:",
     "a)\n\t", "@", "from a:1", "A.a.", "errno: 1, code: 'a', ", ",path: a", " \t"],
)  # fmt: skip
def test_long_repetitions_do_not_hang(unit: str) -> None:
    assert remove_frames(unit * (20_000 // len(unit)) + "!")

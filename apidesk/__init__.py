"""apidesk for Python programs and LangChain applications.

    import apidesk

    with apidesk.open() as desk:
        print(desk.ask("what does error 44203 mean?").answer)

Questions are answered in this process, without a server. docs/how-to/use-from-langchain.md has examples.
The names in `__all__` and in `apidesk.loaders` are the public interface; everything else may change between
versions.
"""

from typing import TYPE_CHECKING

__all__ = ["Answer", "Apidesk", "ApideskError", "Filters", "Question", "Source", "open"]

if TYPE_CHECKING:
    from apidesk.desk import Answer, Apidesk, ApideskError, Filters, Question, Source, open
else:

    def __getattr__(name: str) -> object:
        """Import a public name on first use, because the command line starts faster without LangChain."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from apidesk import desk

        return getattr(desk, name)

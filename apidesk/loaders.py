"""LangChain loaders for sources of kind `loader`.

A module of its own, because platform.toml names them by a path that must be the same in the wheel.
"""

from typing import TYPE_CHECKING

from ingestion.loaders.feishu import FeishuWikiLoader
from ingestion.loaders.notion import NotionLoader
from ingestion.loaders.yuque import YuqueLoader

__all__ = ["ConfluenceHtmlLoader", "FeishuWikiLoader", "NotionLoader", "YuqueLoader"]

if TYPE_CHECKING:
    from ingestion.loaders.confluence import ConfluenceHtmlLoader
else:

    def __getattr__(name: str) -> object:
        """Import the loader that needs the extra `loaders` on first use."""
        if name != "ConfluenceHtmlLoader":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ingestion.loaders.confluence import ConfluenceHtmlLoader

        return ConfluenceHtmlLoader

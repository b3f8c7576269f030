"""LangChain loaders for sources of kind `loader`.

This is a separate module because platform.toml names a loader by its import path. The wheel renames
`ingestion.loaders` to `apidesk.ingestion.loaders`, but `apidesk.loaders` has the same path everywhere.
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
        """Import ConfluenceHtmlLoader on first use, because it needs the extra `loaders`."""
        if name != "ConfluenceHtmlLoader":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ingestion.loaders.confluence import ConfluenceHtmlLoader

        return ConfluenceHtmlLoader

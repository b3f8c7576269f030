"""Selects between the versions of a page, if the index contains several versions of it.

If the question names a version of the page, as in "the file size limit in v1", chunks of this version
replace the chunks of all other versions. If it names no version, chunks of the newest version replace those
of all other versions. A chunk with words of the question that the newest version lacks is not replaced.
Deprecated versions count as the oldest, and unreleased versions as older than released ones.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ingestion.store.catalogue import DocumentKey, entry_key
from ingestion.store.collection import Collection
from ingestion.store.schema import searchable_text
from ingestion.text.markdown_blocks import strip_anchor
from ingestion.text.version_names import (
    Version,
    asked_versions,
    parse_version,
    path_without_version,
)
from ingestion.text.words import index_words, query_words
from runnables.question.extract_details import details_of
from schemas.document import CatalogueEntry, Chunk, RetrievedChunk
from schemas.question import Question

_Versions = Mapping[str, Sequence[Chunk]]
"""The chunks of each version of a page, by version name. The name is empty if the page states none."""


@dataclass(frozen=True)
class PageVersions:
    """The retrieved pages that exist in several versions, and what the question says about versions."""

    pages: Mapping[DocumentKey, _Versions]
    """All versions of a page, by each document that is a version of it."""
    asked: Mapping[str, str]
    """The versions that the question names, each mapped to the words in the question that name it."""
    words: Set[str]
    """The stems of the words of the question, without common words."""

    def name_of(self, chunk: Chunk) -> str:
        """Return the version to name when `chunk` is quoted; empty if its page has only one version."""
        return version_of(chunk) if self._versions_of(chunk) else ""

    def is_selected(self, chunk: Chunk) -> bool:
        """Return whether `select` keeps `chunk`, and does not replace it by chunks of other versions."""
        versions = self._versions_of(chunk)
        return not versions or version_of(chunk) in self._selected(chunk, versions)

    def asked_name_of(self, chunk: Chunk) -> str:
        """Return the words with which the question names the version of `chunk`; empty if it does not."""
        return self.asked.get(version_of(chunk), "")

    def select(self, ranking: Iterable[RetrievedChunk]) -> list[RetrievedChunk]:
        """Return `ranking` with only chunks of selected versions, without duplicates.

        The top of this module explains which version of a page is selected. Each chunk of another version
        is replaced by the most similar chunk of the selected version. If the question names several
        versions of a page, all of these are selected, and a chunk of one is followed by the most similar
        chunks of the others.
        """
        selected: dict[str, RetrievedChunk] = {}
        for retrieved in ranking:
            for each in self._replacements(retrieved):
                selected.setdefault(each.chunk.id, each)
        return list(selected.values())

    def _replacements(self, retrieved: RetrievedChunk) -> Iterator[RetrievedChunk]:
        chunk = retrieved.chunk
        versions = self._versions_of(chunk)
        own = version_of(chunk)
        selected = self._selected(chunk, versions) if versions else {own}
        if own in selected:
            yield retrieved
        for name in sorted(selected - {own}, key=parse_version, reverse=True):
            counterpart = self._counterpart(chunk, versions[name])
            yield RetrievedChunk(chunk=counterpart, score=retrieved.score)

    def _versions_of(self, chunk: Chunk) -> _Versions:
        return self.pages.get(chunk.document_key, {})

    def _selected(self, chunk: Chunk, versions: _Versions) -> Set[str]:
        """Return the versions that the question names or, if it names none of `versions`, the newest one.

        If `chunk` contains words of the question that the newest version lacks, the version of `chunk` is
        returned instead of the newest one.
        """
        if asked := self.asked.keys() & versions.keys():
            return asked
        newest = max(versions, key=lambda name: _version_order(name, versions[name]))
        known = set[str]().union(*(self._words_of(each) for each in versions[newest]))
        return {newest if self._words_of(chunk) <= known else version_of(chunk)}

    def _counterpart(self, chunk: Chunk, others: Sequence[Chunk]) -> Chunk:
        """Return the chunk in `others` that is most similar to `chunk`.

        Chunks of the same kind are preferred, then those under the same heading, then those with more
        words of the question.
        """

        def likeness(other: Chunk) -> tuple[bool, bool, int]:
            has_same_heading = other.section.lower() == chunk.section.lower()
            return other.kind == chunk.kind, has_same_heading, len(self._words_of(other))

        return max(others, key=likeness)

    def _words_of(self, chunk: Chunk) -> Set[str]:
        return self.words & index_words(searchable_text(chunk))


NO_VERSIONS = PageVersions({}, {}, frozenset())
"""Used if none of the retrieved pages exists in several versions."""


def version_of(chunk: Chunk) -> str:
    """Return the version of the document of `chunk`; empty if it has none."""
    return chunk.metadata.get("version", "")


def is_deprecated(chunk: Chunk) -> bool:
    """Return whether the document of `chunk` describes something that is deprecated."""
    return chunk.metadata.get("deprecated") == "true"


def _version_order(name: str, chunks: Sequence[Chunk]) -> tuple[bool, Version]:
    """Return the sort key of a version. It is largest for the newest version that is not deprecated."""
    return not is_deprecated(chunks[0]), parse_version(name)


class VersionFinder:
    """Finds the other versions of documents in a collection. Its methods block."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._index: tuple[Sequence[CatalogueEntry], _Index, _Index] | None = None

    def find(self, question: Question, chunks: Iterable[Chunk]) -> PageVersions:
        """Return the versions of the pages of `chunks`, without chunks that the filters exclude."""
        documents = {chunk.document_key: chunk for chunk in chunks}
        others = {key: self._other_documents(chunk) for key, chunk in documents.items()}
        keys = {key for found in others.values() for key in found}
        if not keys:  # most questions
            return NO_VERSIONS
        by_document: defaultdict[DocumentKey, list[Chunk]] = defaultdict(list)
        for chunk in self._collection.chunks_of_documents([*keys, *documents]):
            if question.filters.allow(chunk):
                by_document[chunk.document_key].append(chunk)
        pages: dict[DocumentKey, _Versions] = {}
        for key, found in others.items():
            versions: dict[str, list[Chunk]] = {}
            for each in (key, *found):
                if own := by_document[each]:
                    versions.setdefault(version_of(own[0]), own)
            if len(versions) > 1:
                pages |= {each[0].document_key: versions for each in versions.values()}
        names = dict.fromkeys(name for versions in pages.values() for name in versions)
        words = frozenset(query_words(details_of(question).search_query))
        return PageVersions(pages, asked_versions(question.text, names), words)

    def _other_documents(self, chunk: Chunk) -> list[DocumentKey]:
        """Return the documents that may be other versions of the document of `chunk`.

        These documents are in the same language, their ids end with the same part, and they have the same
        path or page URL, apart from the version. If there are none, and the document describes an API and
        has a version, the result is the APIs in the same language with the same title and, apart from the
        version, the same API path.
        """
        by_name, by_title = self._indexes()

        def is_other(entry: CatalogueEntry) -> bool:
            return entry.language == chunk.language and entry_key(entry) != chunk.document_key

        named = filter(is_other, by_name[_last_part(chunk.document_id)])
        found = [entry for entry in named if _is_same_page(chunk, entry)]
        if not found and version_of(chunk) and chunk.api_url:
            titled = filter(is_other, by_title[chunk.title])
            found = [entry for entry in titled if _has_same_path(chunk.api_url, entry.api_url)]
        return list(map(entry_key, found))

    def _indexes(self) -> tuple["_Index", "_Index"]:
        """Return the documents by the last part of their id, and by their title."""
        catalogue = self._collection.catalogue()
        if self._index is None or self._index[0] is not catalogue:
            by_name, by_title = _Index(list), _Index(list)
            for entry in catalogue:
                by_name[_last_part(entry.document_id)].append(entry)
                by_title[entry.title].append(entry)
            self._index = catalogue, by_name, by_title
        return self._index[1:]


_Index = defaultdict[str, list[CatalogueEntry]]


def _last_part(document_id: str) -> str:
    return document_id.rstrip("/").rpartition("/")[2]


def _is_same_page(chunk: Chunk, entry: CatalogueEntry) -> bool:
    """Return whether two documents have the same path or page URL, apart from the version."""
    if chunk.source == entry.source and _has_same_path(chunk.document_id, entry.document_id):
        return True
    url, other_url = strip_anchor(chunk.page_url), strip_anchor(entry.page_url)
    return bool(url) and url != other_url and _has_same_path(url, other_url)


def _has_same_path(path: str, other: str) -> bool:
    return path_without_version(path) == path_without_version(other)

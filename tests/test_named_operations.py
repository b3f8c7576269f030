"""The operation that a question names by its name, its id or its path, without a model."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingestion.store.collection import Collection
from runnables.classification.classify import classify_by_rules
from runnables.classification.topic_gate import CLEARLY_OFF_TOPIC, ON_TOPIC, estimate_on_topic
from runnables.question.extract_details import extract_details
from runnables.question.query_analysis import Glossary
from runnables.retrieval.exact_search import DEFINED, definition_strength, missing_identifiers
from runnables.retrieval.named_operations import (
    chunks_by_name,
    chunks_by_path,
    chunks_of_compared_apis,
    is_at_path,
)
from schemas.question import Filters, StructuredQuestion
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import open_collection, write
from tests.small_platform import settings_of

OPERATIONS = {
    "getBooking": ("Get a booking", "GET", "/v2/bookings/{booking_id}", "Returns one booking."),
    "listBookings": ("List bookings", "GET", "/v2/bookings", "Newest booking first."),
    "createBooking": ("Create a booking", "POST", "/v2/bookings", "Books a free slot."),
    "getCustomer": ("Get a customer", "GET", "/v2/customers/{id}", "Returns one customer."),
    "createCustomer": ("Create a customer", "POST", "/v2/customers", "Creates a customer."),
    "bookings.cancel": ("Cancel a booking", "POST", "/v2/bookings/{id}/cancel", "Frees the slot."),
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    settings = read_settings(milvus_uri=str(tmp_path_factory.mktemp("store") / "milvus.db"))
    opened = open_collection(settings, "embedded")
    operations = [
        page(key, f"- URL: `{url}`\n- Method: `{method}`\n\n{text}", title=name, api_name=name, api_url=url, language="en")
        for key, (name, method, url, text) in OPERATIONS.items()
    ]  # fmt: skip
    guides = [
        page("faq", "Two people can share a booking. A booking is confirmed by e-mail.", language="en"),
        page("keys", "An administrator can create keys. A key never expires.", language="en"),
    ]  # fmt: skip
    addresses = [
        chunk.model_copy(update={"kind": "request_url"}) for each in operations for chunk in each
    ]
    write(opened, [*addresses, *(chunk for each in guides for chunk in each)])
    yield opened
    opened.close()


def classified(collection: Collection, question: str) -> StructuredQuestion:
    return classify_by_rules(extract_details(question), collection, Glossary({})).structured


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("can two people share one booking", None),
        ("is the booking confirmed by email", None),
        ("I keep getting booking errors", None),
        ("who can create keys", None),
        ("get a booking", "Get a booking"),
        ("how do I retrieve one booking", "Get a booking"),
        ("fetch booking parameters", "Get a booking"),
        ("getBooking", "Get a booking"),
        ("what params does create booking take", "Create a booking"),
        ("I am getting an error when creating a customer", "Create a customer"),
        ("how do I add a new booking", "Create a booking"),
        ("createBooking params", "Create a booking"),
        ("how do I call bookings.cancel", "Cancel a booking"),
    ],
)
def test_operation_is_named_by_its_verb_and_noun_or_its_id(
    collection: Collection, question: str, name: str | None
) -> None:
    assert classified(collection, question).api_name == name


def test_named_operation_need_not_be_a_candidate_of_the_search(collection: Collection) -> None:
    (name,) = {c.api_name for c in chunks_by_name(collection, "what does create booking take")}
    assert name == "Create a booking"
    assert chunks_by_name(collection, "a booking for a customer that I create") == []


@pytest.mark.parametrize(
    ("question", "name", "error"),
    [
        ("POST /bookings 402", "Create a booking", "402"),
        ("GET /bookings 403", "List bookings", "403"),
        ("GET /bookings/bkg_1 404", "Get a booking", "404"),
        ("error 409 on POST /bookings", "Create a booking", "409"),
        ("POST /v2/bookings returns 409 slot_unavailable", "Create a booking", "slot_unavailable"),
    ],
)
def test_path_without_base_path_and_status_name_operation_and_error(
    collection: Collection, question: str, name: str, error: str
) -> None:
    structured = classified(collection, question)
    assert (structured.api_name, structured.error, structured.type) == (name, error, "api_call")


def test_path_of_one_segment_lacks_only_a_base_path(collection: Collection) -> None:
    assert is_at_path("/v2/bookings", "/bookings")
    assert is_at_path("/api/2024-06-01/bookings", "/bookings")
    assert is_at_path("/salon/api/bookings", "/bookings")
    assert not is_at_path("/{salon}/v2/bookings", "/bookings")
    assert not is_at_path("/dop/v1/order/ship", "/ship")
    assert not is_at_path("/v2/bookings/{id}", "/bookings")
    assert chunks_by_path(collection, "/cancel") == []


def test_path_may_lack_the_segments_that_all_urls_of_its_source_share(tmp_path: Path) -> None:
    urls = {"parcels": "/depot/parcels", "labels": "/depot/vans/parcels", "vans": "/depot/vans"}
    chunks = [
        chunk
        for key, url in urls.items()
        for chunk in page(key, f"- URL: `{url}`\n- Method: `GET`", api_name=key, api_url=url)
    ]
    with closing(open_collection(settings_of(tmp_path), "embedded")) as opened:
        write(opened, chunks)
        found = [
            {c.api_url for c in chunks_by_path(opened, path)} for path in ("/parcels", "/Vans")
        ]
        structured = classified(opened, "which fields does GET /parcels have")
    assert found == [{"/depot/parcels"}, {"/depot/vans"}]
    assert structured.api_url == "/depot/parcels"


LEASES = {
    "Read a lease": ("GET", "/leases/:id"),
    "Renew a lease": ("PUT", "/leases/renew/:lease_id"),
    "Create a note": ("PUT", "/notes"),
    "Delete a note": ("DELETE", "/notes/:kind/:number"),
}


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    settings = read_settings(milvus_uri=str(tmp_path_factory.mktemp("store") / "milvus.db"))
    chunks = [
        chunk.model_copy(update={"kind": "request_url"})
        for name, (method, url) in LEASES.items()
        for chunk in page(name, f"- URL: `{url}`\n- Method: `{method}`", api_name=name, api_url=url)
    ]
    with closing(open_collection(settings, "embedded")) as opened:
        write(opened, chunks)
        yield opened


@pytest.mark.parametrize(
    "path",
    ["renew", "renew/:lease_id", "renew/:id", "renew/{id}", "renew/<id>", "renew/7f3a"],
)
def test_parameter_of_a_path_may_be_missing_or_written_in_any_way(
    leases: Collection, path: str
) -> None:
    details = extract_details(f"what does PUT /leases/{path} do?")
    assert {c.api_name for c in chunks_by_path(leases, details.paths[0])} == {"Renew a lease"}
    assert missing_identifiers(leases, details, Filters()) == []


def test_methods_of_a_path_are_also_those_with_further_parameters(leases: Collection) -> None:
    compared = chunks_of_compared_apis(leases, extract_details("which methods has /notes?"))
    assert {chunk.api_name for chunk in compared} == {"Create a note", "Delete a note"}


def test_operation_id_is_defined_by_its_document_or_line() -> None:
    (by_id,) = page("createBooking", "Books a slot.", api_name="Create a booking")
    (by_line,) = page("post-bookings", "- Method: `POST`\n- operationId: `createBooking`")
    (mention,) = page("guide", "Call `createBooking` twice.")
    strengths = [definition_strength(c, ["createbooking"]) for c in (by_id, by_line, mention)]
    assert [strength >= DEFINED for strength in strengths] == [True, True, False]


@pytest.mark.parametrize(
    ("question", "is_about_service"),
    [
        ("is there an SLA", True),
        ("what is your uptime", True),
        ("有服务等级协议吗", True),
        ("what is the uptime of my laptop", False),
        ("what is the weather in paris", False),
    ],
)
def test_question_about_the_service_is_not_covered_but_not_off_topic(
    collection: Collection, question: str, is_about_service: bool
) -> None:
    probability = estimate_on_topic(extract_details(question), collection, Glossary({}), ())
    assert (CLEARLY_OFF_TOPIC <= probability < ON_TOPIC) is is_about_service

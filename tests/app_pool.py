"""Applications that tests use one after the other, because creating one takes longer than an answer."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

import app.main
from app.container import Container
from app.main import create_app
from app.service.answer_service import AnswerService
from tests.http_client import http_client


class AppPool:
    """Applications that have no client at the moment.

    A new client gets one of them, with the services of the client's own settings.
    """

    def __init__(self) -> None:
        self._free: list[ReusableApp] = []

    @contextmanager
    def client(self, answer_service: AnswerService) -> Iterator[TestClient[Litestar]]:
        """Yield a client of `answer_service`."""
        application = self._take(answer_service)
        with http_client(application.app) as client:
            yield client
        self._free.append(application)

    def _take(self, answer_service: AnswerService) -> "ReusableApp":
        for application in self._free:
            if application.fits(answer_service):
                self._free.remove(application)
                application.replace_services(answer_service)
                return application
        return ReusableApp(answer_service)


class ReusableApp:
    """An application whose services can be replaced while it has no client."""

    def __init__(self, answer_service: AnswerService) -> None:
        services = Container(answer_service)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app.main, "Container", lambda *_: services)
            self.app = create_app(answer_service)
        self._settings = answer_service.settings
        self._platform = answer_service.platform
        self._services = _services(services, self.app.dependencies)

    def fits(self, answer_service: AnswerService) -> bool:
        """Return whether an application of `answer_service` would differ from this one only in its services."""
        settings = answer_service.settings
        return (
            self._platform is answer_service.platform
            and self._settings.cors_origins == settings.cors_origins
            and self._settings.max_body_bytes == settings.max_body_bytes
        )

    def replace_services(self, answer_service: AnswerService) -> None:
        """Give the services that the application uses the state of the services of `answer_service`."""
        container = Container(answer_service)
        services = _services(container, app.main.dependencies_of(container))
        for name, service in services.items():
            replaced = self._services[name]
            assert type(replaced) is type(service)
            replaced.__dict__ = vars(service)


def _services(container: Container, dependencies: Mapping[str, Any]) -> dict[str, object]:
    """Return the container and all objects that an application takes from it, by name."""
    routes = {name: dependencies[name].dependency() for name in ("logged_questions", "suggestions")}
    metrics = container.answer_service.metrics
    return {**vars(container), **routes, "container": container, "metrics": metrics}

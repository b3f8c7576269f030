"""How much of a source is taken, and from where."""

from dataclasses import dataclass

from schemas.settings import Settings


@dataclass(frozen=True)
class SourceLimits:
    """What a document may cost before it is refused."""

    file_bytes: int = 50_000_000
    """A file or a download."""
    unpacked_bytes: int = 200_000_000
    """What a packed document holds."""
    values: int = 2_000_000
    """Scalars, lists and tables of a YAML or JSON document, aliases as often as they are used."""
    fetch_seconds: float = 30.0
    private_hosts: tuple[str, ...] = ()
    """Hosts at private addresses that may be fetched from all the same."""

    @classmethod
    def of(cls, settings: Settings) -> "SourceLimits":
        """The limits in Settings."""
        return cls(
            file_bytes=settings.max_file_bytes,
            unpacked_bytes=settings.max_unpacked_bytes,
            values=settings.max_values,
            fetch_seconds=settings.fetch_timeout,
            private_hosts=settings.private_hosts,
        )

"""A drawing as SVG, which is dark where its reader's screen is."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.graph.layout import Arrow, Drawing

MARGIN = 16.0


def draw_svg(drawing: Drawing, title: str) -> str:
    """The text of an SVG file; `title` is what a screen reader says."""
    environment = Environment(
        loader=PackageLoader("app.graph", ""),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(px=_px, path=_path)
    placed = drawing.moved(MARGIN, MARGIN)
    return environment.get_template("drawing.svg.j2").render(
        title=title,
        width=drawing.width + 2 * MARGIN,
        height=drawing.height + 2 * MARGIN,
        boxes=placed.boxes,
        arrows=placed.arrows,
    )


def _path(arrow: Arrow) -> str:
    start, leave, bend, back, arrive, end = (f"{_px(x)} {_px(y)}" for x, y in arrow.points)
    return f"M{start}L{leave}C{bend} {back} {arrive}L{end}"


def _px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")

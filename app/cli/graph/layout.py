"""Lays out a pipeline as nested boxes from top to bottom, and renders the drawing as SVG.

The SVG has a light and a dark theme.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.cli.graph.diagram import (
    DiagramBranch,
    DiagramParallel,
    DiagramPart,
    DiagramSequence,
    DiagramStep,
)

CHARACTER_WIDTH = 7.9
"""Width of a character in a monospaced font of 13 px."""

STEP_HEIGHT = 34.0
VERTICAL_GAP = 36.0
"""Vertical distance between boxes, which leaves space for an arrow."""
HORIZONTAL_GAP = 22.0
ARROW_HEAD_LENGTH = 9.0
"""Length of the straight end of an arrow."""
LABEL_OFFSET = 18.0
"""Horizontal distance from an arrow to the middle of its label."""
PADDING = 18.0
TITLE_HEIGHT = 26.0
MARGIN = 16.0
"""Space around the drawing."""

BoxKind = Literal["end", "step", "condition", "group"]


@dataclass(frozen=True)
class Box:
    """A rectangle with a label; the label of a group is its title.

    `x` and `y` are the upper left corner.
    """

    kind: BoxKind
    label: str
    x: float
    y: float
    width: float
    height: float
    depth: int = 0


BoxPoint = tuple[float, float]


@dataclass(frozen=True)
class Arrow:
    """An arrow that goes straight down, then in a curve, and straight down again.

    The curve begins at the y coordinate `curve_top` and ends at the y coordinate `curve_bottom`.
    """

    start: BoxPoint
    curve_top: float
    curve_bottom: float
    end: BoxPoint
    label: str = ""

    @property
    def points(self) -> tuple[BoxPoint, BoxPoint, BoxPoint, BoxPoint, BoxPoint, BoxPoint]:
        """Points of the path; the third and fourth are the control points of the curve."""
        (x1, _), (x2, _) = self.start, self.end
        bottom = min(self.curve_bottom, self.end[1] - ARROW_HEAD_LENGTH)
        half = (self.curve_top + bottom) / 2
        return self.start, (x1, self.curve_top), (x1, half), (x2, half), (x2, bottom), self.end

    @property
    def label_at(self) -> BoxPoint:
        """The middle of the label, next to the end of the arrow on its outer side."""
        (x1, _), (x2, _) = self.start, self.end
        return x2 + (-LABEL_OFFSET if x2 < x1 else LABEL_OFFSET), self.curve_bottom - 10

    def moved(self, x: float, y: float) -> "Arrow":
        """Return a copy that is moved right by `x` and down by `y`."""
        start, end = (self.start[0] + x, self.start[1] + y), (self.end[0] + x, self.end[1] + y)
        top, bottom = self.curve_top + y, self.curve_bottom + y
        return replace(self, start=start, curve_top=top, curve_bottom=bottom, end=end)


@dataclass
class Drawing:
    """Boxes and arrows. Incoming arrows end at `entries`, and outgoing arrows start at `exits`."""

    width: float
    height: float
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    entries: list[BoxPoint] = field(default_factory=list)
    exits: list[BoxPoint] = field(default_factory=list)

    def moved(self, x: float, y: float) -> "Drawing":
        """Return a copy that is moved right by `x` and down by `y`."""

        def move(point: BoxPoint) -> BoxPoint:
            return point[0] + x, point[1] + y

        return Drawing(
            self.width,
            self.height,
            [replace(box, x=box.x + x, y=box.y + y) for box in self.boxes],
            [arrow.moved(x, y) for arrow in self.arrows],
            [move(point) for point in self.entries],
            [move(point) for point in self.exits],
        )

    def add(self, other: "Drawing") -> None:
        """Add the boxes and arrows of `other`."""
        self.boxes += other.boxes
        self.arrows += other.arrows


def lay_out(part: DiagramPart, begin: str, end: str) -> Drawing:
    """Lay out `part` between boxes labelled `begin` and `end`."""
    return _stack([_box("end", begin), _lay_out_part(part, 0), _box("end", end)])


def _lay_out_part(part: DiagramPart, depth: int) -> Drawing:
    match part:
        case DiagramStep(name):
            return _box("step", name)
        case DiagramSequence(parts):
            return _stack([_lay_out_part(step, depth) for step in parts])
        case DiagramParallel(name, parts):
            inner = _side_by_side([_lay_out_part(step, depth + 1) for step in parts])
            return _group(name, inner, depth)
        case DiagramBranch():
            return _group(part.name, _lay_out_branch(part, depth + 1), depth)


def _box(kind: BoxKind, label: str) -> Drawing:
    width = max(90.0, len(label) * CHARACTER_WIDTH + 2 * PADDING)
    box = Box(kind, label, 0, 0, width, STEP_HEIGHT)
    middle = width / 2
    return Drawing(width, STEP_HEIGHT, [box], [], [(middle, 0.0)], [(middle, STEP_HEIGHT)])


def _stack(drawings: list[Drawing]) -> Drawing:
    """Place the drawings below each other, centred, and connect them with arrows."""
    width = max((drawing.width for drawing in drawings), default=0.0)
    whole = Drawing(width, 0.0)
    for number, drawing in enumerate(drawings):
        top = whole.height + (VERTICAL_GAP if number else 0.0)
        placed = drawing.moved((width - drawing.width) / 2, top)
        whole.add(placed)
        if number:
            whole.arrows += [
                Arrow(start, whole.height, top, end)
                for start in whole.exits
                for end in placed.entries
            ]
        else:
            whole.entries = placed.entries
        whole.exits = placed.exits
        whole.height = top + drawing.height
    return whole


def _side_by_side(drawings: list[Drawing]) -> Drawing:
    height = max((drawing.height for drawing in drawings), default=0.0)
    whole = Drawing(0.0, height)
    for number, drawing in enumerate(drawings):
        left = whole.width + (HORIZONTAL_GAP if number else 0.0)
        placed = drawing.moved(left, 0.0)
        whole.add(placed)
        whole.entries += placed.entries
        whole.exits += placed.exits
        whole.width = left + drawing.width
    return whole


def _lay_out_branch(branch: DiagramBranch, depth: int) -> Drawing:
    """Return a drawing of the first condition, with the arms for yes and no below it."""
    condition = _box("condition", branch.conditions[0])
    yes, no = _lay_out_part(branch.arms[0], depth), _lay_out_else(branch, depth)
    arms = _side_by_side([yes, no])
    whole = _stack([condition, replace(arms, entries=[])])
    middle, top = whole.entries[0][0], STEP_HEIGHT + VERTICAL_GAP
    labels = ["yes"] * len(yes.entries) + ["no"] * len(no.entries)
    ends = arms.moved((whole.width - arms.width) / 2, top).entries
    for label, end in zip(labels, ends, strict=True):
        whole.arrows.append(Arrow((middle, STEP_HEIGHT), STEP_HEIGHT, top, end, label))
    return whole


def _lay_out_else(branch: DiagramBranch, depth: int) -> Drawing:
    """Return a drawing of the arm for no, which is the next condition or the default arm."""
    if len(branch.conditions) == 1:
        return _lay_out_part(branch.arms[-1], depth)
    rest = replace(branch, conditions=branch.conditions[1:], arms=branch.arms[1:])
    return _lay_out_branch(rest, depth)


def _group(name: str, inner: Drawing, depth: int) -> Drawing:
    """Return `inner` in a box with the title `name`, wide enough that no arrow crosses the title."""
    title = len(name) * CHARACTER_WIDTH + PADDING
    first = min((x for x, _ in inner.entries), default=title)
    width = inner.width + 2 * max(PADDING, title + PADDING / 2 - first)
    whole = inner.moved((width - inner.width) / 2, TITLE_HEIGHT)
    whole.width = width
    whole.height = inner.height + TITLE_HEIGHT + PADDING
    whole.boxes.insert(0, Box("group", name, 0, 0, width, whole.height, depth))
    return whole


def draw_svg(drawing: Drawing, title: str) -> str:
    """Return `drawing` as an SVG file. Screen readers read `title`."""
    environment = Environment(
        loader=PackageLoader(__package__, ""),
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
    start, top, bend, back, bottom, end = (f"{_px(x)} {_px(y)}" for x, y in arrow.points)
    return f"M{start}L{top}C{bend} {back} {bottom}L{end}"


def _px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")

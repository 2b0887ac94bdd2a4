"""Machines: this one, and those that ``--machine`` of the command names."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Dict, List, Optional

from . import _command


class Picture:
    """A drawing and a text: a notebook shows the drawing, a terminal the text."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg = svg
        self.text = text

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text

    def save(self, path: "os.PathLike[str] | str") -> None:
        """Writes the drawing as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


class Machine(_command.Document):
    """A machine: the document ``nodewise.machine/1``."""

    def __init__(self, source: str) -> None:
        self.source = source
        super().__init__(_command.document(["show", "--machine", source]))

    @property
    def nodes(self) -> List[Dict[str, Any]]:
        """The nodes, each a mapping with ``id``, ``cpus`` and what is known of its memory."""
        return self._document["nodes"]

    @property
    def node_ids(self) -> List[int]:
        """The numbers of the nodes."""
        return [node["id"] for node in self.nodes]

    @property
    def distances(self) -> Optional[List[List[int]]]:
        """The distances of firmware between nodes, row by row; ``None`` where they are not known."""
        return self._document.get("distances", {}).get("rows")

    def show(self) -> Picture:
        """The machine as a picture and as text."""
        return show(self.source)

    def _repr_svg_(self) -> str:
        return self.show().svg

    def __repr__(self) -> str:
        return f"<nodewise.Machine {self.source!r}: nodes {', '.join(map(str, self.node_ids))}>"


def machine(source: str = "live") -> Machine:
    """Reads a machine: this one, or what ``--machine`` takes (a capture, a machine file, ``"2x(8c 64G)"``)."""
    return Machine(source)


def show(source: str = "live") -> Picture:
    """Draws a machine."""
    text = _command.run(["show", "--machine", source])
    with tempfile.TemporaryDirectory(prefix="nodewise-") as folder:
        path = os.path.join(folder, "machine.svg")
        _command.run(["show", "--machine", source, "--svg", path])
        with open(path, encoding="utf-8") as file:
            return Picture(file.read(), text)


def explain(policy: str = "default", *, machine: str = "live", cpu_node: Optional[int] = None) -> Dict[str, Any]:
    """Predicts from which nodes the kernel takes memory under a policy, such as ``"preferred:2"``.

    :param cpu_node: the node of the CPU that touches the memory first
    """
    words = ["explain", policy, "--machine", machine]
    if cpu_node is not None:
        words += ["--cpu-node", str(cpu_node)]
    return _command.document(words)

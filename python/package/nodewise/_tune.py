"""Tuning: which placement makes a command or a function fastest."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _command

#: How a worker names its time, which is the metric.
_METRIC = r"nodewise-seconds ([0-9.eE+-]+)"


class Study(_command.Document):
    """The result of a study: the document ``nodewise.tune/2``."""

    def __init__(self, document: Dict[str, Any], text: str, svg: str) -> None:
        super().__init__(document)
        self.text = text
        self.svg = svg

    @property
    def placements(self) -> List[Dict[str, Any]]:
        """Each placement with its name, options, summary and verdict."""
        return self._document["arms"]

    @property
    def best(self) -> Optional[str]:
        """The options of ``nodewise run`` for the placement to use; ``None`` where none was shown to be better."""
        arm = self._document["advice"].get("arm")
        if not isinstance(arm, int) or arm == 0:
            return None
        options = next(one["run_options"] for one in self.placements if one["arm"] == arm)
        return options if isinstance(options, str) else " ".join(options)

    def _repr_svg_(self) -> Optional[str]:
        return self.svg or None

    def __repr__(self) -> str:
        return self.text


def tune(
    what: Union[str, Sequence[str], Callable[[], Any]],
    *,
    time: Optional[str] = None,
    runs: Optional[int] = None,
    placements: Sequence[str] = (),
    metric: Optional[str] = None,
    seed: Optional[int] = None,
) -> Study:
    """Runs a command, or a function without arguments, under every placement that makes sense.

    A function is pickled and called in a new process for each run; what counts is the time of the call, without the
    start of Python and the imports.

    :param time: how long the study may take, such as ``"5m"``
    :param runs: at most that many runs of each placement
    :param placements: only these, in the words of ``nodewise tune --placement``
    :param metric: what to compare, in the words of ``nodewise tune --metric``
    :param seed: of the order of runs
    """
    with tempfile.TemporaryDirectory(prefix="nodewise-") as folder:
        words: List[str] = []
        for name, value in (("--time", time), ("--runs", runs), ("--metric", metric), ("--seed", seed)):
            if value is not None:
                words += [name, str(value)]
        for placement in placements:
            words += ["--placement", placement]
        if callable(what):
            if metric is not None:
                raise ValueError("metric= belongs to a command: of a function its time is compared")
            words += ["--metric", _METRIC]
            command = _command_of(what, folder)
        else:
            command = shlex.split(what) if isinstance(what, str) else [os.fspath(word) for word in what]
        text = _command.run(["tune", *words, "--json", "--", *command])
        document = json.loads(text)
        saved = os.path.join(folder, "study.json")
        with open(saved, "w", encoding="utf-8") as file:
            file.write(text)
        picture = os.path.join(folder, "study.svg")
        shown = _command.run(["tune", "--from", saved, "--svg", picture])
        svg = ""
        if os.path.exists(picture):
            with open(picture, encoding="utf-8") as file:
                svg = file.read()
        return Study(document, shown.rstrip(), svg)


def _command_of(function: Callable[[], Any], folder: str) -> List[str]:
    """A command that calls a function."""
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None)
    if "<lambda>" in name or "<locals>" in name:
        raise ValueError(f"{name} cannot be sent to another process: define it at the top of a module")
    path = os.path.join(folder, "call.pickle")
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None) if module == "__main__" else None
    if module == "__main__" and script is None:
        raise ValueError(f"{name} was defined in a shell or a notebook: put it into a module, and import it")
    with open(path, "wb") as file:
        pickle.dump({"path": sys.path, "script": script and os.path.abspath(script), "name": name}, file)
        if script is None:
            pickle.dump(function, file)
    return [sys.executable, "-m", "nodewise._call", path]

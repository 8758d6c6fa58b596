"""Warnings that show the user's line, whatever function of the package it calls and however deep they arise."""

import contextlib
import functools
import inspect
import os
import warnings
from pathlib import Path

# Context managers and cached properties put lines of the standard library between the package's own.
_BETWEEN = str(Path(__file__).parents[1]) + os.sep, contextlib.__file__, functools.__file__


def warn(message: str) -> None:
    """Warn at the innermost line outside the package that led to the call."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)

"""Entry of the command `posterior-consensus`: Ctrl-C while modules are imported ends it as at any other time.

A module beside the package, since importing the package alone takes long enough to press Ctrl-C.
"""

import os
import signal

INTERRUPTED = 130  # as shells report a program that SIGINT ended


class EndedAtOnce:
    """Let Ctrl-C end the process without a traceback: within an import, Python can make another error of it.

    A program that handles or ignores Ctrl-C in its own way goes on doing so.
    """

    def __enter__(self) -> None:
        self._is_set = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            if self._is_set:
                signal.signal(signal.SIGINT, _end)
        except ValueError:  # not the main thread, which is the one that is interrupted
            self._is_set = False

    def __exit__(self, *_: object) -> None:
        if self._is_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """Run the command and return its exit code."""
    with EndedAtOnce():
        from posterior_consensus.cli import main as run
    return run()


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)

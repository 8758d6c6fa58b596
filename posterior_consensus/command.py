"""Entry of the command `posterior-consensus`: Ctrl-C while modules are imported ends it as at any other time.

A file of its own, since what cli.py imports is what takes that long.
"""

from posterior_consensus.runtime.progress import ended_at_once


def main() -> int:
    """Run the command and return its exit code."""
    with ended_at_once():
        from posterior_consensus.cli import main as run
    return run()

import pytest

from posterior_consensus.search.runs import Action, Allowed, Progress, next_step

ALLOWED = Allowed(n_starts=16, n_agree=3, n_perturbations=None, budget=1000.0, patience=1)
BEGUN = Progress(
    n_runs=0, n_at_best=0, runs_in_vain=0, is_rearranged=False, n_restarts=0, restarts_in_vain=0, operations=1.0
)
REARRANGED = BEGUN._replace(n_runs=16, is_rearranged=True)


@pytest.mark.parametrize(
    ("allowed", "progress", "step"),
    [
        ({}, BEGUN, (Action.RUN, 16)),
        ({}, BEGUN._replace(n_at_best=3, runs_in_vain=3), (Action.RUN, 16)),  # given starts alone say little
        ({}, BEGUN._replace(n_runs=15, n_at_best=2, runs_in_vain=2), (Action.RUN, 1)),
        ({}, BEGUN._replace(n_runs=16), (Action.REARRANGE, 1)),
        ({}, BEGUN._replace(n_runs=3, n_at_best=3), (Action.REARRANGE, 1)),
        ({}, BEGUN._replace(n_runs=5, runs_in_vain=3), (Action.REARRANGE, 1)),
        ({}, REARRANGED, (Action.RESTART, 8)),
        ({}, REARRANGED._replace(n_restarts=100, restarts_in_vain=63), (Action.RESTART, 1)),
        ({}, REARRANGED._replace(n_restarts=100, restarts_in_vain=64), (Action.END, 0)),
        ({"patience": 2}, REARRANGED._replace(n_restarts=100, restarts_in_vain=127), (Action.RESTART, 1)),
        ({}, REARRANGED._replace(n_at_best=3, n_restarts=32, restarts_in_vain=32), (Action.END, 0)),
        ({}, REARRANGED._replace(operations=300.0), (Action.RESTART, 3)),
        ({}, REARRANGED._replace(operations=300.0, n_restarts=3), (Action.END, 0)),
        ({"n_perturbations": 200}, REARRANGED._replace(n_restarts=198, restarts_in_vain=198), (Action.RESTART, 2)),
        ({"n_perturbations": 0}, REARRANGED, (Action.END, 0)),
    ],
)
def test_what_comes_next(allowed, progress, step):
    assert next_step(ALLOWED._replace(**allowed), progress) == step

"""One word for one thing, in the signature of every public function and method."""

import inspect

import posterior_consensus as pc

OTHER_WORDS = {
    "n_starts": {"n_runs", "n_init", "n_restarts", "restarts", "runs", "n_tries"},
    "seconds": {"time_limit", "max_seconds", "timeout", "max_time"},
    "random_seed": {"seed", "random_state", "rng"},
    "partition": {"estimate", "clustering", "consensus", "center", "centre"},
    "reference": {"truth", "other"},
    "progressbar": {"progress", "verbose"},
}
NAMESPACES = (pc, pc.consensus, pc.diagnostics, pc.experts, pc.losses, pc.simulate)
FUNCTIONS = {
    f"{function.__module__}.{name}": function
    for namespace in NAMESPACES
    for name in namespace.__all__
    if inspect.isfunction(function := getattr(namespace, name))
}
METHODS = {f"METHODS[{name!r}]": method.function for name, method in pc.METHODS.items()}
ALLOWED = {
    "rng": set(METHODS),
    "truth": {"posterior_consensus.simulate.perturbation.random_perturbation"},
    "consensus": {"posterior_consensus.layers.compare.compare_layers"},  # whether to search for it
}


def test_signatures_have_one_word_for_one_thing():
    assert len(FUNCTIONS | METHODS) > 80
    failures = []
    for name, function in (FUNCTIONS | METHODS).items():
        parameters = set(inspect.signature(function).parameters)
        for word, others in OTHER_WORDS.items():
            found = {other for other in others & parameters if name not in ALLOWED.get(other, ())}
            failures += [f"{name}: `{word}`, not {found}"] if found else []
    assert not failures

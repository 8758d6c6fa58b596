"""One word for one thing: in the signature of every public function and method, and in texts that users see."""

import inspect
import re
from pathlib import Path

import posterior_consensus as pc
from tests.catalogue.functions import PUBLIC

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


ROOT = Path(__file__).parents[2]
OTHER_TERMS = {  # by the word of docs/developers/words.md; in texts that users see
    "uncertain": r"ambiguous (?:items?|pairs?|records?|samples?|cells?)",
    "mode": r"(?:second|further|other|several|two|one) groups? of draws",
    "agreement": r"similarity of (?:the |two )?runs",
    "increase": r"\bthe rise of the (?:smallest )?expected loss",
}
SAID = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "tests" / "approved").glob("*.txt")}
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in (
        ROOT / "README.md",
        *(ROOT / "examples").glob("*.py"),
        *(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "generated", "developers"} & {*page.parts}),
        *(ROOT / "posterior_consensus" / "summary" / "report").glob("*.[phj][tys]*"),
    )
}
DOCSTRINGS = {name: inspect.getdoc(value) or "" for name, value in PUBLIC.items()}


def test_texts_have_one_word_for_one_thing():
    assert len(SAID) > 10 and len(PAGES) > 50 and len(DOCSTRINGS) > 100
    assert all(re.search(OTHER_TERMS[word], text) for word, text in (("uncertain", "ambiguous items"),))
    failures = []
    for where, text in (SAID | PAGES | DOCSTRINGS).items():
        plain = " ".join(re.sub(r"^# ?", "", text, flags=re.MULTILINE).split())
        failures += [
            f"{where}: {word}, not {found[0]!r}"
            for word, other in OTHER_TERMS.items()
            if (found := re.search(other, plain, re.IGNORECASE))
        ]
    assert not failures

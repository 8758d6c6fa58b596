"""Make up 1,000 records of persons, and score pairs of them as programs of record linkage do.

The records are invented, so that the truth is known: given name, surname, date of birth, city and e-mail of persons who
live alone or in families. A person has one to five records, at most one in each of five data sets. Values are missing,
misspelt, out of date or swapped. Surnames have a heavy tail, so that many persons share one. Members of a family share
their surname, their city and some of them an e-mail address; twins share a date of birth, and a few children are named
after a parent.

The scores are those of the model of Fellegi and Sunter (1969). Each field of a pair is equal, similar, different or
unknown. The model has the probability of each level if the two records are of one person (m) and if they are of two
(u). Here u are the shares among all pairs, and m and the share of matches are estimated by EM. The match weight is

    log2(share / (1 - share)) + sum over the fields of log2(m / u),

and the match probability is 1 / (1 + 2^-weight). Fields are taken as independent, which they are not in a family: like
those of most such models, the scores are imperfect. Only pairs that agree in a blocking key are scored, so that some
pairs of one person are missing from the table.

Run ``python score_persons.py`` to write ``persons.csv``, with the true person of each record as ``person``, and
``pairs.csv``, with the column names of splink. It takes some seconds.
"""

import argparse
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

EXAMPLES = Path(__file__).parents[1] / "posterior_consensus" / "example_data"
SEED, N_RECORDS = 47, 1_000
DATA_SETS = ["school", "clinic", "library", "payroll", "council"]
RECORDS_EACH = [0.4, 0.27, 0.18, 0.1, 0.05]  # shares of persons with one to five records
FIELDS = ["given_name", "surname", "date_of_birth", "city", "email"]
BLOCKING = [["surname"], ["date_of_birth"], ["email"], ["given_name", "city"]]
EQUAL, SIMILAR, DIFFERENT, UNKNOWN = range(4)
SMALLEST = 0.001  # pairs below this probability are not written

GIVEN_NAMES = """
    Oliver Amelia George Isla Harry Ava Noah Emily Jack Sophia Leo Grace Oscar Mia Charlie Poppy Muhammad Ella William
    Lily Henry Evie Thomas Freya James Charlotte Alfie Daisy Joshua Sophie Edward Alice Samuel Phoebe Daniel Ruby
    Alexander Hannah Joseph Chloe David Elizabeth Adam Lucy Michael Sarah Robert Margaret Richard Catherine Peter Helen
    Andrew Jessica Stephen Rebecca Anthony Victoria Patrick Eleanor Martin Rachel Simon Nicola Philip Joanne
""".split()
SURNAMES = """
    Smith Jones Taylor Brown Williams Wilson Johnson Davies Patel Robinson Wright Thompson Evans Walker White Roberts
    Green Hall Wood Jackson Clarke Khan Harris Lewis Turner Hill Cooper Ward Moore Morris King Watson Baker Harrison
    Morgan Young Allen Mitchell Begum Anderson Phillips Bell Lee Parker Davis Bennett Miller Cook Shaw Price Richardson
    Marshall Carter Griffiths Collins Bailey Gray Foster Stewart Hughes Murphy Kelly Hussain Cox Knight Mason Webb
    Palmer Holmes Reid Chapman Rogers Stevens Ellis Hunt Mills Barnes Matthews Dixon Pearson Fletcher Wells Andrews
    Armstrong Lawson Burton Hudson Perry Barker Carr Stone Francis Osborne Lambert Gibbs Parsons Sharp Bishop Hyde
    Whitfield Thornton Sutcliffe Pemberton Ashworth Holloway Fairclough Winterbottom Entwistle Cavanagh Lockwood
""".split()
CITIES = """
    London Birmingham Leeds Glasgow Sheffield Bradford Liverpool Edinburgh Manchester Bristol Cardiff Leicester Coventry
    Nottingham Newcastle Brighton Plymouth Derby Southampton Swansea York Norwich Exeter Oxford
""".split()
NICKNAMES = {
    **{"William": "Bill", "Elizabeth": "Liz", "Robert": "Bob", "Margaret": "Maggie", "Richard": "Dick"},
    **{"Catherine": "Kate", "Michael": "Mike", "Edward": "Ted", "Samuel": "Sam", "Alexander": "Alex"},
    **{"Thomas": "Tom", "Joshua": "Josh", "Daniel": "Dan", "Rebecca": "Becky", "Victoria": "Vicky"},
    **{"Anthony": "Tony", "Andrew": "Andy", "Stephen": "Steve", "Charlotte": "Lottie", "Eleanor": "Nell"},
}


def make_persons(rng, n_records=N_RECORDS):
    """Make up the records.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_records : int

    Returns
    -------
    pandas.DataFrame
        A row for each record, in random order: its data set, its fields, and the number of the true person.
    """
    rows, person = [], 0
    while len(rows) < n_records:
        for truth in family(rng):
            n = rng.choice(len(RECORDS_EACH), p=RECORDS_EACH) + 1
            rows.extend(
                {"source_dataset": data_set, **as_recorded(truth, rng), "person": person}
                for data_set in rng.choice(DATA_SETS, n, replace=False)
            )
            person += 1
    order = rng.permutation(len(rows))[:n_records]
    names = pd.Index([f"r{number:04d}" for number in range(1, n_records + 1)], name="unique_id")
    return pd.DataFrame([rows[at] for at in order], index=names)


def family(rng):
    """Values of the members of a household: one to four persons who share a surname and a city."""
    surname, city, given_name = by_rank(SURNAMES, rng), by_rank(CITIES, rng), by_rank(GIVEN_NAMES, rng)
    size = rng.choice(4, p=[0.8, 0.1, 0.05, 0.05]) + 1
    year = rng.integers(1940, 1985)
    members = []
    for k in range(size):
        child = k > 1 or (k == 1 and rng.random() < 0.3)
        born = date(year + child * rng.integers(22, 38) + (not child) * rng.integers(-4, 5), rng)
        named_after_parent = child and rng.random() < 0.12
        own = {"given_name": given_name if k == 0 or named_after_parent else by_rank(GIVEN_NAMES, rng)}
        own |= {"surname": surname, "date_of_birth": born, "city": city}
        if k == 3 and rng.random() < 0.6:  # twins
            own["date_of_birth"] = members[-1]["date_of_birth"]
        shares_address = k > 0 and rng.random() < 0.2
        own["email"] = members[0]["email"] if shares_address else address(own, rng)
        members.append(own)
    return members


def by_rank(values, rng):
    """Draw one of the values: the k-th is as frequent as 1 / (k + 3)."""
    weights = 1 / (np.arange(len(values)) + 4)
    return str(rng.choice(values, p=weights / weights.sum()))


def date(year, rng):
    """A day of the year."""
    return str(np.datetime64(f"{year}-01-01") + rng.integers(365))


def address(person, rng):
    """An e-mail address, from some of the names and a number."""
    given_name, surname = person["given_name"].lower(), person["surname"].lower()
    name = rng.choice([f"{given_name}.{surname}", f"{given_name[0]}{surname}", given_name, f"{surname}family", "me"])
    return f"{name}{rng.integers(10, 1000)}@{rng.choice(['example.com', 'mail.example.org', 'post.example.net'])}"


def as_recorded(truth, rng):
    """The fields as a record has them, with errors; None if missing."""
    own, chance = dict(truth), rng.random(7)
    if chance[0] < 0.12 and own["given_name"] in NICKNAMES:
        own["given_name"] = NICKNAMES[own["given_name"]]
    elif chance[0] < 0.2:
        own["given_name"] = misspelt(own["given_name"], rng)
    if chance[1] < 0.1:
        own["surname"] = misspelt(own["surname"], rng)
    elif chance[1] < 0.13:
        own["surname"] = by_rank(SURNAMES, rng)  # married, say
    year, month, day = own["date_of_birth"].split("-")
    if chance[2] < 0.03 and int(day) <= 12:
        own["date_of_birth"] = f"{year}-{day}-{month}"
    elif chance[2] < 0.1:
        own["date_of_birth"] = f"{year}-{month}-{rng.integers(1, 29):02d}"
    if chance[3] < 0.1:
        own["city"] = by_rank(CITIES, rng)  # moved
    if chance[4] < 0.08:
        own["email"] = misspelt(own["email"], rng)
    elif chance[4] < 0.16:
        own["email"] = address(own, rng)
    if chance[5] < 0.03:
        own["given_name"], own["surname"] = own["surname"], own["given_name"]
    missing = rng.random(len(FIELDS)) < [0.03, 0.02, 0.1, 0.1, 0.4]
    return {field: None if gone else own[field] for field, gone in zip(FIELDS, missing, strict=True)}


def misspelt(word, rng):
    """A word with two letters swapped, or one left out, doubled or replaced."""
    at = int(rng.integers(1, min(len(word), 8) - 1))
    kind = rng.integers(4)
    if kind == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    letter = ["", 2 * word[at], str(rng.choice(list("aeilnrst")))][kind - 1]
    return word[:at] + letter + word[at + 1 :]


def compare(records, left, right):
    """Compare the fields of pairs of records.

    Parameters
    ----------
    records : pandas.DataFrame
    left, right : ndarray of shape (pair,)
        Positions of the records.

    Returns
    -------
    ndarray of shape (pair, field), dtype int8
        EQUAL, SIMILAR, DIFFERENT or UNKNOWN.
    """
    levels = [field_levels(records[field], SIMILAR_IF[field], left, right) for field in FIELDS]
    given, surname = records["given_name"].to_numpy(), records["surname"].to_numpy()
    swapped = (given[left] == surname[right]) & (surname[left] == given[right])
    for level in levels[:2]:
        level[swapped & (level == DIFFERENT)] = SIMILAR
    return np.stack(levels, axis=1)


def field_levels(column, similar, left, right):
    """Levels (pair,) of one field: each pair of values is compared once."""
    codes, values = pd.factorize(column)
    table = np.full((len(values) + 1, len(values) + 1), UNKNOWN, np.int8)  # the last row is that of missing values
    table[:-1, :-1] = DIFFERENT
    for one, other in combinations(range(len(values)), 2):
        if similar(values[one], values[other]):
            table[one, other] = table[other, one] = SIMILAR
    np.fill_diagonal(table[:-1, :-1], EQUAL)
    return table[codes[left], codes[right]]


def similar_words(one, other, at_least=0.8):
    """Whether most letters of two words are the same, in order."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= at_least and matcher.ratio() >= at_least


def similar_dates(one, other):
    """Whether two dates differ in one digit, or by day and month swapped."""
    n_different = sum(a != b for a, b in zip(one, other, strict=True))
    return n_different == 1 or one == f"{other[:4]}-{other[8:]}-{other[5:7]}"


SIMILAR_IF = {
    **dict.fromkeys(["given_name", "surname", "city"], similar_words),
    **{"date_of_birth": similar_dates, "email": partial(similar_words, at_least=0.93)},
}


def fit_fellegi_sunter(levels, n_steps=100):
    """Estimate the probabilities of the levels by EM, with those of non-matches fixed.

    Parameters
    ----------
    levels : ndarray of shape (pair, field)
        Levels of all pairs, most of which are not matches.
    n_steps : int

    Returns
    -------
    m, u : ndarray of shape (field, level)
        Probabilities given a match and a non-match of the known levels; 1 for UNKNOWN.
    share : float
        Share of matches.
    """
    patterns, counts = np.unique(levels, axis=0, return_counts=True)
    n_fields, own = patterns.shape[1], np.arange(patterns.shape[1])

    def shares(weights):
        probabilities = np.ones((n_fields, UNKNOWN + 1))
        for field in own:
            total = 0.1 + np.bincount(patterns[:, field], weights, UNKNOWN + 1)[:UNKNOWN]  # none is 0
            probabilities[field, :UNKNOWN] = total / total.sum()
        return probabilities

    u, share = shares(counts), 0.001
    m = np.tile([0.8, 0.1, 0.1, 1.0], (n_fields, 1))
    for _ in range(n_steps):
        odds = share / (1 - share) * np.prod(m[own, patterns] / u[own, patterns], axis=1)
        matches = counts * odds / (1 + odds)
        m, share = shares(matches), matches.sum() / counts.sum()
    return m, u, share


def blocked(records, left, right):
    """Whether (pair,) the two records have the same known values of a blocking key."""
    found = np.zeros(left.size, np.bool_)
    for key in BLOCKING:
        own = records[key].agg(lambda row: None if row.isna().any() else "|".join(row), axis=1)
        codes = pd.factorize(own)[0]
        found |= (codes[left] == codes[right]) & (codes[left] >= 0)
    return found


def score(records):
    """Score the pairs that agree in a blocking key.

    Parameters
    ----------
    records : pandas.DataFrame

    Returns
    -------
    pandas.DataFrame
        A row for each pair, with the column names of splink.
    """
    left, right = np.triu_indices(len(records), 1)
    levels = compare(records, left, right)
    m, u, share = fit_fellegi_sunter(levels)
    near = blocked(records, left, right)
    left, right, levels = left[near], right[near], levels[near]
    weight = np.log2(share / (1 - share)) + np.log2((m / u)[np.arange(len(FIELDS)), levels]).sum(axis=1)
    names = records.index.to_numpy()
    scores = {"match_weight": weight.round(3), "match_probability": (1 / (1 + 2**-weight)).round(6)}
    pairs = pd.DataFrame(scores | {"unique_id_l": names[left], "unique_id_r": names[right]})
    return pairs[pairs["match_probability"] >= SMALLEST].sort_values("match_weight", ascending=False, kind="stable")


def main(out):
    """Make the records, score the pairs and write both.

    Parameters
    ----------
    out : path_like
        The folder to write to.
    """
    persons = make_persons(np.random.default_rng(SEED))
    pairs = score(persons)
    persons.to_csv(Path(out) / "persons.csv")
    pairs.to_csv(Path(out) / "pairs.csv", index=False)
    person = persons["person"]
    same = person.loc[pairs["unique_id_l"]].to_numpy() == person.loc[pairs["unique_id_r"]].to_numpy()
    sizes = person.value_counts()
    print(f"{len(persons)} records of {len(sizes)} persons; {(sizes * (sizes - 1) // 2).sum()} pairs of one person")
    print(f"{len(pairs)} scored pairs, {same.sum()} of them of one person")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make up records of persons, and score pairs of them.")
    parser.add_argument("--out", type=Path, default=EXAMPLES, help="folder to write to")
    main(parser.parse_args().out)

"""The pictures at the head of the theory pages, of four to six items each. A page names the function of its picture."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import xlogy

import posterior_consensus as pc

COLOURS = np.array(["#0072b2", "#e69f00", "#009e73", "#cc79a7"])
GREY = "#767676"
TOGETHER, ONE_OUT, CROSSED = [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]


def _items(ax, labels, x, y, size=150):
    """Four items in a row in the colours of their clusters, from x on."""
    at = x + np.arange(4.0)
    ax.scatter(at, np.full(4, y), s=size, c=COLOURS[labels], clip_on=False, zorder=3)
    for place, name in zip(at, "abcd", strict=True):
        ax.text(place, y, name, color="white", ha="center", va="center_baseline", fontsize=8, zorder=4)


def _in_words(labels):
    """A partition as text, such as ab|cd."""
    return "|".join("".join(np.array([*"abcdef"[: len(labels)]])[np.equal(labels, k)]) for k in np.unique(labels))


def _partitions(n=4):
    """All partitions of the items."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*one, k] for one in found for k in range(max(one) + 2)]
    return found


def _draws(*counted):
    """Draws of the partitions, each as often as it is counted."""
    return np.repeat([labels for labels, _ in counted], [count for _, count in counted], axis=0)


def losses():
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 1.7), width_ratios=(1, 2), layout="constrained")
    for y, (name, labels) in enumerate({"draw": ONE_OUT, "partition": TOGETHER}.items()):
        _items(left, labels, 0, y, 260)
        left.text(-0.7, y, name, ha="right", va="center")
    left.set(xlim=(-3, 3.4), ylim=(-0.6, 1.6))
    left.axis("off")
    for y, (start, width, shared) in enumerate(((0.689, 0.811, 0.689), (0.0, 1.0, 0.689))):
        right.barh(y, width, left=start, color=COLOURS[0], height=0.5)
        right.barh(y, 0.311, left=shared, color=GREY, height=0.5)
    right.text(0.845, 0.5, "shared\n0.31", ha="center", va="center", fontsize=9)
    right.text(0.345, 1, "only here: 0.69", ha="center", va="center", color="white", fontsize=9)
    right.text(1.25, 0, "only here: 0.50", ha="center", va="center", color="white", fontsize=9)
    right.set(yticks=[], xlabel="information (bits)", ylim=(-0.5, 1.5))
    right.spines[["top", "left", "right"]].set_visible(False)


def uncertainty():
    counted = ((TOGETHER, 60), ([0, 0, 1, 2], 12), ([0, 0, 0, 0], 5), (ONE_OUT, 20), (CROSSED, 3))
    distances = [pc.partition_loss(TOGETHER, labels, loss="vi") for labels, _ in counted]
    share = np.cumsum([count for _, count in counted]) / 100
    _, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
    ax.step([0, *distances, 2.3], [0, *share, 1], where="post", color=GREY)
    for (labels, count), x, y in zip(counted, distances, share, strict=True):
        ax.plot(x, y, "o", color=COLOURS[0])
        below = -24 if y > 0.97 else -15  # not on the line of 95%
        ax.annotate(f"{_in_words(labels)}  {count}%", (x, y), (6, below), textcoords="offset points", fontsize=9)
    ax.axvspan(0, distances[3], color=COLOURS[0], alpha=0.12)
    ax.axhline(0.95, color=GREY, linestyle=":")
    ax.text(0.02, 0.955, "95%", va="bottom", fontsize=9)
    ax.set(
        xlabel="VI from ab|cd (bits)", ylabel="share of draws\nwithin this distance", ylim=(0.5, 1.05), xlim=(0, 2.4)
    )
    ax.spines[["top", "right"]].set_visible(False)


def modes():
    one, other, singles = [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]
    counted = ((one, 45), ([0, 0, 0, 1, 1, 2], 14), (singles, 3), ([0, 1, 2, 0, 1, 3], 9), (other, 29))
    between = pc.partition_loss(one, other, loss="vi")
    _, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
    for (labels, count), colour in zip(counted, COLOURS[[0, 0, -1, 1, 1]], strict=True):
        to_one, to_other = (pc.partition_loss(mode, labels, loss="vi") for mode in (one, other))
        x, is_valley = (to_one - to_other) / between, labels is singles
        ax.bar(x, count, 0.2, color=GREY if is_valley else colour)
        ax.text(x, count + 1, _in_words(labels), ha="center", fontsize=9)
        if is_valley:
            ax.annotate("valley", (x, 9), (x, 25), ha="center", arrowprops={"arrowstyle": "->", "color": GREY})
    ax.set(xlabel="place between the modes abc|def and ad|be|cf", ylabel="draws", ylim=(0, 54))
    ax.spines[["top", "right"]].set_visible(False)


def search():
    partitions = np.array(_partitions())
    draws = _draws((TOGETHER, 6), (ONE_OUT, 2), ([0, 0, 1, 2], 1), ([0, 1, 2, 2], 1))
    expected = pc.expected_loss(draws, partitions, loss="vi")["expected_loss"].values
    number = partitions.max(axis=1) + 1
    # Whether each pair is co-clustered, for all but item i: partitions with equal ones differ by a move of i.
    pairs = partitions[:, :, np.newaxis] == partitions[:, np.newaxis]
    others_of = [np.delete(np.delete(pairs, i, 1), i, 2).reshape(15, -1) for i in range(4)]
    is_move = np.any([(one[:, np.newaxis] == one).all(axis=2) for one in others_of], axis=0)
    steps = [np.flatnonzero(row).tolist() for row in is_move & ~np.eye(15, dtype=bool)]
    _, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for one, others in enumerate(steps):
        for other in others:
            ax.plot(number[[one, other]], expected[[one, other]], color="#cccccc", linewidth=0.6, zorder=0)
    path = [int(number.argmax())]
    while expected[best := min(steps[path[-1]], key=expected.__getitem__)] < expected[path[-1]]:
        path.append(best)
    ax.plot(number[path], expected[path], color=COLOURS[0], linewidth=2)
    ax.plot(number, expected, "o", color=GREY, markersize=4)
    for k in path:
        ax.annotate(_in_words(partitions[k]), (number[k], expected[k]), (7, -11), textcoords="offset points")
    ax.set(
        xlabel="number of clusters", ylabel="expected VI (bits)", xticks=range(1, 5), xlim=(0.8, 4.7), ylim=(0.2, None)
    )
    ax.spines[["top", "right"]].set_visible(False)


def convergence():
    rng = np.random.default_rng(4)
    states = np.array([np.cumsum(rng.random(80) < 0.15) % 2, np.r_[np.zeros(10), np.ones(70)]]).astype(int)
    _, ax = plt.subplots(figsize=(6, 1.6), layout="constrained")
    for y, chain in enumerate(states):
        ax.bar(np.arange(80), 0.7, 1.0, bottom=y - 0.35, color=COLOURS[chain])
        ax.text(81, y, f"b with c: {np.mean(chain):.0%}", va="center")
    ax.set(yticks=[0, 1], yticklabels=["chain 0", "chain 1"], xlabel="draw", xlim=(-0.5, 79.5), ylim=(1.5, -0.5))
    for k, name in enumerate(("ab|cd", "abc|d")):
        ax.bar(0, 0, color=COLOURS[k], label=name)
    ax.legend(ncols=2, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def partial_partitions():
    sets = {"abc|d\nall four": 0.48, "abc\nwithout d": 0.92, "ab\nwithout c, d": 1.0}
    _, ax = plt.subplots(figsize=(5, 2.4), layout="constrained")
    ax.bar(list(sets), list(sets.values()), 0.5, color=[GREY, COLOURS[0], GREY])
    ax.axhline(0.8, color=GREY, linestyle=":")
    ax.set(ylabel="share of draws", ylim=(0, 1.05))
    ax.spines[["top", "right"]].set_visible(False)


def priors():
    _, ax = plt.subplots(figsize=(5.5, 2.3), layout="constrained")
    for k, concentration in enumerate((0.5, 1.0, 2.0)):
        prior = pc.priors.crp(concentration).n_clusters(4)
        ax.bar(prior["n_clusters"] + 0.27 * (k - 1), prior, 0.25, color=COLOURS[k], label=f"crp({concentration:g})")
    ax.set(xlabel="number of clusters of four items", ylabel="prior probability", xticks=range(1, 5))
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def comparing():
    one = pc.as_partition_draws(_draws((TOGETHER, 8), ([0, 0, 1, 2], 2)))
    other = pc.as_partition_draws(_draws((TOGETHER, 4), (ONE_OUT, 6)))
    first, second = (np.asarray(pc.posterior_similarity_matrix(draws)) for draws in (one, other))
    _, axes = plt.subplots(1, 3, figsize=(7, 2.3), layout="constrained")
    panels = {"first posterior": first, "second": second, "difference": second - first}
    for ax, (name, values) in zip(axes, panels.items(), strict=True):
        colours, lowest = ("PiYG", -1) if name == "difference" else ("Blues", 0)
        ax.imshow(values, cmap=colours, vmin=lowest, vmax=1)
        for (i, j), value in np.ndenumerate(values):
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", color="white" if value > 0.7 else "black")
        ax.set(title=name, xticks=range(4), xticklabels="abcd", yticks=range(4), yticklabels="abcd")
        ax.tick_params(length=0)


def layers():
    _, ax = plt.subplots(figsize=(5, 2.2), layout="constrained")
    for name, labels, y in (("first layer", ONE_OUT, 1), ("second layer", TOGETHER, 0)):
        _items(ax, labels, 0, y, 300)
        ax.text(-0.6, y, name, ha="right", va="center")
    ax.vlines(range(4), 0.15, 0.85, colors=[GREY, GREY, COLOURS[1], GREY], linewidth=[1, 1, 3, 1])
    ax.text(3.3, 0.5, "c moves in 70% of the draws", va="center")
    ax.set(xlim=(-1.8, 6.4), ylim=(-0.4, 1.4))
    ax.axis("off")


def parameters():
    rng = np.random.default_rng(2)
    means = np.array([-2.0, 2.0]) + rng.normal(0, 0.3, (60, 2))
    named = np.where((np.arange(60) // 20 == 1)[:, np.newaxis], means[:, ::-1], means)
    _, axes = plt.subplots(1, 2, figsize=(7, 2.1), sharey=True, layout="constrained")
    for ax, values, title in zip(axes, (named, means), ("as sampled", "relabelled"), strict=True):
        for k in range(2):
            ax.plot(values[:, k], color=COLOURS[k], label=f"component {k}")
        ax.set(title=title, xlabel="draw")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="mean of a component")
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, frameon=False, loc="outside upper center")


def extensions():
    _, ax = plt.subplots(figsize=(5, 2.3), layout="constrained")
    for y, labels in enumerate(([0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2])):
        _items(ax, labels, 0, y, 260)
        ax.text(-0.6, y, f"draw {y}", ha="right", va="center")
    ax.add_patch(plt.Rectangle((-0.45, -0.5), 1.9, 3, fill=False, edgecolor=GREY, linestyle="--"))
    ax.text(0.5, 2.65, "equal signatures", ha="center")
    ax.set(xlim=(-1.6, 3.6), ylim=(-0.6, 3))
    ax.axis("off")


def bounds():
    draws, shares = _draws((TOGETHER, 2), (ONE_OUT, 1)), np.array([-1, -1, -1 / 3, -1 / 3])
    _, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
    for y, own in enumerate(([0, 1], [2, 3], [0, 1, 2], [1, 2, 3], [0, 1, 2, 3], [3])):
        sizes = [np.bincount(labels[own]) for labels in draws]
        cost = len(own) * np.log2(len(own)) - 2 * np.mean([xlogy(one, one).sum() / np.log(2) for one in sizes])
        ax.plot([shares[own].sum(), cost], [y, y], color=GREY, zorder=1)
        ax.plot(shares[own].sum(), y, "o", color="white", markeredgecolor=COLOURS[0], markersize=9)
        ax.plot(cost, y, "o", color=COLOURS[0], markersize=5)
    ax.set(
        yticks=range(6),
        yticklabels=["ab", "cd", "abc", "bcd", "abcd", "d"],
        xlabel="cost, or sum of shares (bits)",
        ylim=(5.6, -1),
    )
    ax.annotate("shares (ring)", (shares[[0, 1, 2]].sum(), 2), (0, 11), textcoords="offset points", ha="center")
    ax.annotate("cost (dot)", (-1.08, 2), (0, 11), textcoords="offset points", ha="center")
    ax.spines[["top", "right"]].set_visible(False)

"""From the posterior of a mixture to a clustering one can report: tables on the terminal, figures in a folder.

The posterior, pc.load_example("galaxies"), is that of a Dirichlet process mixture for the velocities of 82 galaxies;
sample_galaxies.py made it with PyMC, which this script does not need.
"""

from pathlib import Path

import posterior_consensus as pc

FIGURES = Path("figures")


def main() -> None:
    """Do the main job once."""
    tree = pc.load_example("galaxies")
    summary = pc.summarize(tree, random_seed=1)
    show("The clustering to report", summary)
    show("In plain words", "\n".join(summary.findings()))
    show("Do the chains agree?", summary.diagnosis)
    show("How far the posterior reaches", summary.ball)
    show("Which galaxies are uncertain", summary.items)

    binder = pc.consensus_partition(summary.draws, loss="binder", random_seed=1)
    show("The same under Binder's loss", binder)
    show(
        "Compared under the first loss",
        pc.compare_partitions(summary.draws, {"vi": summary.partition, "binder": binder}, loss="vi"),
    )
    show("For the section on methods", summary.methods_text())

    tree = pc.attach(tree, summary)
    show("Kept with the posterior, as group 'consensus'", ", ".join(tree["consensus"].data_vars))

    FIGURES.mkdir(exist_ok=True)
    summary.plot()[0, 0].figure.savefig(FIGURES / "summary.png", dpi=150)
    pc.plot_psm(summary.draws, summary.partition).figure.savefig(FIGURES / "psm.png", dpi=200)
    report = summary.to_html(FIGURES / "report.html")
    print(f"\nFigures: {', '.join(str(file) for file in sorted(FIGURES.glob('*.png')))}; report: {report}")


def show(title: str, result: object) -> None:
    """Print a heading and a result."""
    print(f"\n{title}\n{'-' * len(title)}\n{result}")


if __name__ == "__main__":
    main()

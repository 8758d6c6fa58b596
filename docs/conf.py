"""Sphinx configuration."""

import ast
import hashlib
import os
import re
import shutil
import sys
import textwrap
import tomllib
from functools import cache
from itertools import accumulate
from operator import attrgetter
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import posterior_consensus
from posterior_consensus.summary.report.still import for_dark_screens

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
TUTORIALS = HERE / "tutorials"


def copy_examples():
    """Put the notebooks of examples/ where Sphinx looks for pages.

    A file is a notebook if it has cells. In git it stays under examples/ alone, so that the script
    a user runs and the page a user reads cannot come apart.
    """
    for page in TUTORIALS.glob("*.py"):  # left by a notebook that has been renamed
        if not (EXAMPLES / page.name).exists():
            page.unlink()
    for source in EXAMPLES.glob("*.py"):
        if "\n# %%" in source.read_text(encoding="utf-8"):
            shutil.copy2(source, TUTORIALS)  # with its date: Sphinx builds changed pages only


copy_examples()
sys.path.insert(0, str(HERE))  # for gallery.py, plotted.py, and notebooks.py, which runs the tutorials
os.environ["PYTHONPATH"] = str(HERE.parent)  # notebooks import this checkout's package, and no file beside them


def examples():
    """Script, question and alternative text of each figure in gallery.py, by the name of its function or class."""
    source = (HERE / "gallery.py").read_text(encoding="utf-8")
    imports, found = {}, {}
    for part in ast.parse(source).body:
        text = ast.get_source_segment(source, part)
        if isinstance(part, ast.Import):
            imports[part.names[0].asname] = text
        elif isinstance(part, ast.FunctionDef):
            body = textwrap.dedent(text.split('"""', 2)[2]).strip()
            needed = [line for name, line in imports.items() if f"{name}." in body]
            question, words, *_ = ast.get_docstring(part).split("\n\n")
            code = "\n".join([*needed, "", body])
            found[part.name] = {"code": code, "question": question, "alt": words.replace("\n", " ")}
            found[part.name]["call"] = call_of(part.body)
    return found


def call_of(body):
    """The call that makes a figure, with the calls in place of the names of their results.

    Its arguments are left out, unless the first is what an input function made, or one is `by`: they tell calls of one
    name apart.
    """
    made = {ast.unparse(part.targets[0]): part.value for part in body if isinstance(part, ast.Assign)}

    def words(node):
        match node:
            case ast.Call(args=[first, *_]) if words(first).startswith("pc.as_"):
                return f"{words(node.func)}({words(first)})"
            case ast.Call(keywords=[ast.keyword(arg="by", value=ast.Constant(value=by))]):
                return f'{words(node.func)}(..., by="{by}")'
            case ast.Call():
                return words(node.func) + ("(...)" if node.args or node.keywords else "()")
            case ast.Attribute():
                return f"{words(node.value)}.{node.attr}"
            case ast.Name(id=name):
                return words(made[name]) if name in made else name
        return ""

    return words(body[-1].value).partition(".set_")[0]


FIGURES = examples()
GROUP = re.compile(r"^::::\{dropdown\} ([^:\n]+)(.*)\n((?:.*\n)+?)::::$", re.MULTILINE)  # of names in the reference
NAME = re.compile(r"^(?:   |\.\. py:data:: )([\w.]+)$", re.MULTILINE)
BROAD, MANY = 8, 3  # inches of a picture, and columns of a table, that do not fit on a phone

project = "posterior_consensus"
author = "The posterior_consensus developers"
copyright = f"2026, {author}"
version = release = posterior_consensus.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_nb",
    "numpydoc",
    "plotted",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas show without a network: MathJax is a part of the site
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
# Links into other projects' pages need the network, without which a build must not fail.
if os.environ.get("DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "arviz": ("https://python.arviz.org/en/stable/", None),
        "matplotlib": ("https://matplotlib.org/stable/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "python": ("https://docs.python.org/3/", None),
        "xarray": ("https://docs.xarray.dev/en/stable/", None),
    }

# To MyST-NB every .py is a notebook here, these included.
exclude_patterns = [
    "_build",
    "conf.py",
    "gallery.py",
    "walk.py",
    "notebooks.py",
    "callouts.py",
    "chain.py",
    "plotted.py",
    "background/pictures.py",
]
templates_path = ["_templates"]

autosummary_generate = True
autosummary_context = {"examples": FIGURES}
# Properties show their types. For parameters, numpydoc's sections say them, with shapes, and fields would repeat them.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template documents them

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_custom_formats = {".py": "notebooks.run"}
nb_execution_mode = "off"  # they come with their results
nb_output_stderr = "remove"  # whether kernels are compiled, or a bar is shown, depends on the machine

html_theme = "sphinx_book_theme"
html_title = f"{project} {version}"
html_theme_options = {"use_download_button": False, "navbar_persistent": []}  # one search box
# The one place of the address is pyproject.toml: with it, each page links the file that it is made of.
with (HERE.parent / "pyproject.toml").open("rb") as metadata:
    repository = tomllib.load(metadata)["project"].get("urls", {}).get("Repository")
if repository:
    html_theme_options |= {"repository_url": repository, "path_to_docs": "docs", "use_repository_button": True}
    html_theme_options |= {"use_source_button": True, "use_edit_page_button": True}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_favicon = "_static/favicon.svg"
# Pages of source lie in no list of pages; without one, a build takes 10 seconds less.
html_sidebars = {"_modules/**": ["navbar-logo.html", "search-button-field.html"]}
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["custom.css"]

bibtex_bibfiles = ["../posterior_consensus/summary/references.bib"]
bibtex_reference_style = "author_year"

plot_formats = [("png", 150)]
plot_html_show_formats = plot_html_show_source_link = plot_include_source = False
plot_pre_code = ""  # examples import what they need
plot_rcparams = {"figure.facecolor": "white", "savefig.transparent": True, "savefig.bbox": "tight"}

copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: | {2,5}\.\.\.: "
copybutton_prompt_is_regexp = True


def write_thumbnail(picture, file):
    """Write a picture in the size of a card."""
    image = Image.open(picture)
    image = image.crop(image.getbbox())  # without transparent margins
    image.thumbnail((680, 460))
    image.save(file)


class Figures(SphinxDirective):
    """A card for each public name in the content, with its figure and a link to its example.

    A name with a word after it, such as "by_chain", is that of the second figure on its page.
    """

    has_content = True

    def run(self):
        self.env.note_dependency(str(HERE / "gallery.py"))
        built = Path(self.env.app.doctreedir).parent
        drawn = built / "plot_directive" / "api" / "generated"  # read before this page
        thumbnails = built / "thumbnails"
        thumbnails.mkdir(exist_ok=True)
        cards = ["::::{grid} 1 2 2 3", ":gutter: 2"]
        for line in self.content:
            name, *second = line.split()
            key = "_".join([attrgetter(name)(posterior_consensus).__name__, *second])
            figure = FIGURES[key]
            cards += [
                f":::{{grid-item-card}} {figure['question']}",
                f":link: figure-{key.lower()}",
                ":link-type: ref",
                ":class-card: figure-card",
            ]
            image = thumbnails / f"{key}.png"
            write_thumbnail(drawn / f"posterior_consensus-{name.replace('.', '-')}-{1 + len(second)}.png", image)
            cards += [f"```{{image}} {os.path.relpath(image, HERE)}", f":alt: {figure['alt']}", "```"]
            call = re.sub(r"(?<!pc)(?=\.\w)|(?<=\()(?=\w)", "<wbr>", figure["call"])  # where it may break
            cards += ["", f'<p class="sd-card-text"><code class="literal">{call}</code></p>', "", ":::"]
        return self.parse_text_to_nodes("\n".join([*cards, "::::"]))


def suit_dark_screens(app, page):
    """Put a version for dark screens beside each picture, and mark those of panels too many for a phone."""
    folder, source = Path(app.doctreedir).parent / "dark", Path(app.env.doc2path(app.env.docname))
    folder.mkdir(exist_ok=True)
    for node in list(page.findall(nodes.image)):
        file = Path(app.env.relfn2path(node["uri"])[1])
        if file.suffix != ".png":
            continue
        dark = folder / f"{hashlib.sha256(file.read_bytes()).hexdigest()}.png"
        picture = Image.open(file)
        if not dark.exists():
            for_dark_screens(picture.convert("RGBA")).save(dark)
        if picture.width > BROAD * picture.info.get("dpi", (100,))[0]:
            node["classes"].append("broad")
        twin = node.deepcopy()
        twin["uri"] = os.path.relpath(dark, source.parent)
        node["classes"].append("only-light")
        twin["classes"].append("only-dark")
        node.parent.insert(node.parent.index(node) + 1, twin)


def suit_phones(app, page):
    """Repeat the headings of tables of many columns, or with formulas, in their cells: on a phone, a row is a card."""
    for table in page.findall(nodes.table):
        head, *rows = table.findall(nodes.row)
        if not table.next_node(nodes.thead) or (len(head) < MANY and not table.next_node(nodes.math)):
            continue
        table["classes"].append("cards")
        for row in rows:
            for cell, heading in zip(row, head, strict=True):
                if cell.astext() and heading.astext():
                    words = (word.deepcopy() for word in heading[0].children)
                    cell[0].insert(0, nodes.inline("", "", *words, classes=["of-column"]))


def link_letters(app, page):
    """Begin the glossary with a bar of links: each letter to the first of its terms."""
    if app.env.docname == "glossary":
        terms, letters = next(page.findall(addnodes.glossary)), {}
        for term in terms.findall(nodes.term):
            letters.setdefault(term.astext()[0].upper(), term["ids"][0])
        bar = nodes.paragraph(classes=["letters"])
        for letter, place in letters.items():
            bar += [nodes.reference("", letter, refid=place), nodes.Text(" ")]
        terms.parent.insert(terms.parent.index(terms), bar)


def put_version(app, page, source):
    """Put the version into the package's entry: pages have no number that a release would change."""
    if page == "citing":
        source[0] = source[0].replace("{VERSION}", f"{{{version}}}")


def link_tutorials(app, page, source):
    """Link the page of a tutorial instead of its file in examples/, which readers of the repository follow."""
    source[0] = source[0].replace("../examples/", "tutorials/")


def join_alternative_texts(app, page, source):
    """Put the alternative text of a picture on one line: MyST would join its lines without a space."""
    source[0] = re.sub(r"!\[[^\]]*\](?=\()", lambda text: text[0].replace("\n", " "), source[0])


def link_public_names(app, page):
    """Link the first mention of each public name, such as `pc.summarize(idata)`, on a page to the reference."""
    name, seen = app.env.docname, set()
    if not name.startswith(("tutorials/", "how_to/", "background/", "from_")):
        return
    kinds = (nodes.title, nodes.reference, addnodes.pending_xref)  # no links within
    left = {node for kind in kinds for one in page.findall(kind) for node in one.findall(nodes.literal)}
    for node in list(page.findall(nodes.literal)):
        public = node.astext().partition("(")[0]
        if public in seen or node in left or not public.startswith("pc."):
            continue
        seen.add(public)
        target = {"reftarget": f"posterior_consensus.{public[3:]}", "refdoc": name, "refwarn": False}
        link = addnodes.pending_xref("", node.deepcopy(), refdomain="py", reftype="obj", refexplicit=True, **target)
        node.replace_self(link)


def name_members(app, page, source):
    """Name what each folded group of the reference holds in its title, for readers who look for it."""

    def named(group):
        topic, words, body = group.groups()
        names = ((name.removeprefix("results."), name) for name in NAME.findall(body))
        links = " ".join(f"{{py:obj}}`{short} <posterior_consensus.{name}>`" for short, name in names)
        return f"::::{{dropdown}} **{topic}**{words}<br>{links}\n{body}::::"

    if page == "api/index":
        source[0] = GROUP.sub(named, source[0])


def put_properties_first(app, domain, kind, content):
    """List the properties of a class before its methods."""
    if kind == "class":
        members = [part for part in content if isinstance(part, addnodes.desc)]
        for member in members:
            content.remove(member)
        content += sorted(members, key=lambda member: member["objtype"] == "method")


def hide_signature_of_results(app, what, name, obj, options, signature, returns):
    """Functions make results, no reader does."""
    return ("", "") if what == "class" and name.startswith("posterior_consensus.results.") else None


def link_by_name(app, env, node, contnode):
    """Link a public name that a docstring of another module mentions: it is public in one place."""
    python = env.domains.python_domain
    end = f".{node['reftarget']}"
    places = [place for place, found in python.objects.items() if place.endswith(end) and not found.aliased]
    if node.get("refdomain") != "py" or len(places) != 1:
        return None
    found = python.objects[places[0]]
    return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contnode)


def link_sources(app, page, template, context, doctree):
    """Link the file in the repository of a page that is a copy, and none of a page that is generated."""
    suffix, link = context.get("page_source_suffix"), context["get_edit_provider_and_url"]
    sources = {"changelog": "CHANGELOG.md", "developers/contributing": "CONTRIBUTING.md"}
    if suffix == ".py":
        sources[page] = f"examples/{page.rpartition('/')[2]}.py"
    if page.startswith("api/generated/"):
        context["page_source_suffix"] = None
    elif page in sources:
        provider, url = link()
        url = url.replace(f"docs/{page}{suffix}", sources[page])
        context["get_edit_provider_and_url"] = lambda: (provider, url)


def fold_reference(app, page, template, context, doctree):
    """Fold the sidebar's names of the reference as its first page does, without modules, to break after underscores."""
    make_tree, title = context["generate_toctree_html"], app.env.titles["api/index"].astext()
    text = (HERE / "api" / "index.md").read_text(encoding="utf-8")
    topics = {name: topic for topic, _, body in GROUP.findall(text) for name in NAME.findall(body)}

    @cache
    def tree(**options):
        made, folded = make_tree(**options), {}
        for entry in made.find("a", string=title).find_next("ul")("li", recursive=False):
            module, _, name = entry.a.text.rpartition(".")
            path = filter(None, ("Results" if module == "results" else None, topics.get(entry.a.text)))
            entry.a.clear()
            entry.a.extend(BeautifulSoup(name.replace("_", "_<wbr>"), "html.parser"))
            for place in accumulate((topic,) for topic in path):
                if place not in folded:
                    fold = f"<li><details><summary>{place[-1]}</summary><ul></ul></details></li>"
                    folded[place] = BeautifulSoup(fold, "html.parser").li
                    entry.insert_before(folded[place])
                folded[place].ul.append(entry)
                if "current" in entry["class"]:
                    folded[place].details["open"] = ""
        return made

    context["generate_toctree_html"] = tree


def write_reports(app, error):
    """Write the reports that the landing page links, beside the pages."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "reports"
        folder.mkdir(exist_ok=True)
        for name, loss in (("galaxies", "vi"), ("records", "binder")):
            data = posterior_consensus.load_example(name)
            posterior_consensus.summarize(data, loss=loss, random_seed=1).to_html(folder / f"{name}.html")


def write_notebooks(app, error):
    """Write each tutorial as a notebook beside its page, which links it."""
    if error is None and app.builder.format == "html":
        import notebooks

        for file in TUTORIALS.glob("*.py"):
            notebooks.write(file, Path(app.outdir) / "tutorials" / f"{file.stem}.ipynb")


def setup(app):
    app.add_directive("figures", Figures)
    app.connect("source-read", put_version)
    app.connect("source-read", link_tutorials)
    app.connect("source-read", join_alternative_texts)
    app.connect("source-read", name_members)
    app.connect("object-description-transform", put_properties_first)
    app.connect("autodoc-process-signature", hide_signature_of_results)
    app.connect("doctree-read", link_letters)
    app.connect("doctree-read", suit_dark_screens, priority=400)  # before Sphinx collects the pictures
    app.connect("doctree-read", suit_phones)
    app.connect("doctree-read", link_public_names)
    app.connect("missing-reference", link_by_name)
    app.connect("html-page-context", fold_reference, priority=501)  # once the theme has made its functions
    if repository:
        app.connect("html-page-context", link_sources, priority=501)  # the theme then makes its buttons
    app.connect("build-finished", write_reports)
    app.connect("build-finished", write_notebooks)

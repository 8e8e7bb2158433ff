"""The site: `make docs` builds it, offline; warnings are errors, and every page with code is executed."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from numpydoc.xref import DEFAULT_LINKS
from sphinx.util.nodes import make_refnode

from bayesnb import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _public_names import argument_names, find_name  # noqa: E402

project, author, copyright = "bayesnb", "The bayesnb authors", "The bayesnb authors"
version = release = __version__
# Addresses of the project, once it has any: docs/contributing/publish_a_version.md.
urls = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosectionlabel",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_*"]
templates_path = ["_templates"]
nitpicky = True
# Base classes of families are documented with their heirs; `unweighted`, with the attributes of each classifier.
nitpick_ignore_regex = [("py:class", r"bayesnb\.families\..*"), ("py:obj", "unweighted")]

# Pages are run in an empty folder, with examples/ importable, and each time: a cache would not see that code changed.
nb_execution_mode = "force"
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
os.environ.pop("MPLBACKEND", None)  # the kernel's own, which shows figures
os.environ["TQDM_DISABLE"] = "1"
os.environ["PYTHONPATH"] = str(HERE.parent)
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")  # figures as SVG
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {"version": version}
myst_links_external_new_tab = False
# A notebook that was not run, as in CI, does not say in which language it is.
suppress_warnings = ["mystnb.unknown_mime_type", "myst-nb.lexer", "mystnb.lexer", "autosectionlabel.*"]
autosectionlabel_prefix_document = True  # docstrings refer to sections by page and title

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say types and shapes
autodoc_class_signature = "mixed"
default_role = "code"
numpydoc_show_class_members = False  # they follow, each with its own docstring
toc_object_entries_show_parents = "hide"

# The inventories hold the names that the pages mention, so that a build needs no network. A name without a line there
# stays plain code. ArviZ 0.23 and 1 have the pages of other versions, and both are supported.
intersphinx_mapping = {
    library: (address, f"_inventories/{library}.txt")
    for library, address in {
        "arviz": "https://python.arviz.org/en/v0.23.0/",
        "jax": "https://docs.jax.dev/en/latest/",
        "matplotlib": "https://matplotlib.org/stable/",
        "numpy": "https://numpy.org/doc/stable/",
        "numpyro": "https://num.pyro.ai/en/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
        "xarray": "https://docs.xarray.dev/en/stable/",
    }.items()
}
# Other names of the modules and classes in the inventories.
ALIASES = {
    "az.": "arviz.",
    "jnp.": "jax.numpy.",
    "np.": "numpy.",
    "pd.": "pandas.",
    "numpyro.infer.MCMC": "numpyro.infer.mcmc.MCMC",
    "numpyro.infer.NUTS": "numpyro.infer.hmc.NUTS",
}
TYPES = ["arviz.InferenceData", "matplotlib.axes.Axes", "matplotlib.figure.Figure", "numpy.random.Generator"]
TYPES += ["pandas.DataFrame", "pandas.Series", "xarray.DataTree"]
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # words that are no key below
numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS}  # no links to the types of Python
numpydoc_xref_aliases |= {name: f":class:`{name}`" for name in TYPES}
numpydoc_xref_aliases |= {name.rpartition(".")[2]: f":class:`~{name}`" for name in TYPES if name[:6] == "pandas"}

html_theme = "pydata_sphinx_theme"
html_title = "bayesnb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_baseurl = urls.get("Documentation", "")
repository = urls.get("Repository", "")
binder = f"https://mybinder.org/v2/git/{quote(repository, safe='')}/v{version}?urlpath=lab/tree/docs/"
html_context = {"repository": repository, "binder": binder, "site": html_baseurl}
html_theme_options = {
    "logo": {"text": "bayesnb"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "page-source"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
}
html_sidebars = {"index": []}
html_show_sourcelink = False


def skip_member(app, what, name, obj, skip, options):
    """Return True if a reference page leaves a member out, else None, which keeps Sphinx's decision.

    scikit-learn documents its own members. Plain attributes, such as defaults of fields, have no docstring.
    """
    is_foreign = not (getattr(obj, "__module__", None) or "bayesnb").startswith("bayesnb")
    return True if is_foreign or what == "attribute" else None


def link_pages(app, what, name, obj, options, lines):
    """Turn `docs/page.md` in a docstring into a link to the page, and `docs/page.md, "Title"` to the section."""
    for i, line in enumerate(lines):
        line = re.sub(r'`?docs/([\w/]+)\.md`?, "([^"]+)"', r':ref:`"\2" <\1:\2>`', line)
        lines[i] = re.sub(r"`?docs/([\w/]+)\.md`?", r":doc:`docs/\1.md </\1>`", line)


def link_names(app, doctree, docname):
    """Make a link of each piece of inline code that stands for one documented name, but in headings and links.

    Names of other libraries, as in `jax.jit` or `np.sum(x)`, lead to the sites of these libraries.
    """
    entries = app.env.domains.python_domain.objects
    known = {name.removeprefix("bayesnb."): entry for name, entry in entries.items() if not entry.aliased}
    arguments = argument_names(frozenset(known))
    for code in list(doctree.findall(nodes.literal)):
        name = find_name(code.astext(), known, arguments)
        if any(isinstance(node, nodes.reference | nodes.title) for node in ancestors(code)):
            continue
        if name is None:
            if address := foreign_address(app, code.astext()):
                code.replace_self(nodes.reference("", "", code.deepcopy(), refuri=address))
            continue
        if known[name].docname == docname:
            continue
        to = known[name]
        code.replace_self(
            make_refnode(app.builder, docname, to.docname, to.node_id, code.deepcopy(), f"bayesnb.{name}")
        )


def foreign_address(app, code):
    """Address of the page of another library that documents the name in `code`, or None if no inventory has it."""
    name = code.partition("(")[0]
    for short, full in ALIASES.items():
        if name.startswith(short):
            name = full + name.removeprefix(short)
    found = (names[name] for names in app.env.intersphinx_inventory.values() if name in names)
    return next((item.uri for item in found), None)


def ancestors(node):
    """Nodes that contain `node`, from the innermost on."""
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app):
    # The extension only sets a path: pages can be read, and run, by several processes.
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("doctree-resolved", link_names)

"""Configuration of the documentation; ``make docs`` builds it."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import attractor

project = "Attractor"
copyright = "The Attractor developers"
version = release = attractor.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "sphinx_copybutton",
    "site_pages",
]
exclude_patterns = ["_build"]
highlight_language = "none"  # equations and commands; Python says that it is Python
smartquotes = False  # they would curl the quotes of shapes

autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "transformers"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 70
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Tutorials run in folders of their own whenever they have changed; an error fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True

# Nothing is read from the network: MathJax is that of an installed package, one file with fonts.
_MATHJAX = metadata.distribution("django-static-mathjax")
html_static_path = [
    "_static",
    str(_MATHJAX.locate_file("mathjax/static/mathjax/es5/tex-svg.js")),
    str(Path(attractor.__file__).parent / "explorer/static/explorer.js"),
]
mathjax_path = "tex-svg.js"

html_theme = "pydata_sphinx_theme"
html_title = "Attractor"
html_css_files = ["attractor.css"]
html_favicon = "_static/icon.svg"
html_search_scorer = str(Path(__file__).parent / "search_scorer.js")
html_context = {"default_mode": "auto"}
html_sidebars = {
    page: []
    for page in ("_modules/**", "start", "explorer", "generated/gallery", "generated/found_wrong")
}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

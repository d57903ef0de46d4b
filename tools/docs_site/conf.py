"""Sphinx' settings for the site, which `python -m tools.docs_site` builds: nothing is loaded from afar."""

from __future__ import annotations

from pathlib import Path

project = "Ultracluster"
language = "en"
extensions = ["myst_parser", "tools.docs_site.extension"]
root_doc = "index"
source_suffix = {".md": "markdown"}
nitpicky = True

myst_heading_anchors = 6  # as git hosts name them
myst_links_external_new_tab = False
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = "Ultracluster"
html_static_path = [
    "static",
    str(Path(__file__).parents[2] / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"),
]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_search_scorer = str(Path(__file__).with_name("search_scores.js"))
html_show_search_summary = False  # it fetches pages, which a browser refuses to a folder of files
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}
highlight_language = "text"

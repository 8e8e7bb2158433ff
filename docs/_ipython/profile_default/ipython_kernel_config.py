"""Figures of the site's pages: SVG, which stays sharp on every screen."""

c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"svg"}

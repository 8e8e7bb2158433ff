"""Figures of the site's pages: SVG, which stays sharp on every screen."""

c = get_config()
c.InlineBackend.figure_formats = {"svg"}

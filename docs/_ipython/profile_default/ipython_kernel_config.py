"""Figures of the site's pages: SVG, which stays sharp on every screen."""

c = get_config()
c.InlineBackend.figure_formats = {"svg"}
c.IPKernelApp.log_level = "ERROR"  # not that a kernel on this machine talks to it without encryption
# Importing NumPyro imports tqdm, which warns, with a path, that the kernel has no widgets for progress bars.
c.IPKernelApp.exec_lines = ["import warnings; warnings.filterwarnings('ignore', 'IProgress not found')"]

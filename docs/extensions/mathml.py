"""Mathematics as MathML, which browsers draw by themselves: pages read the same without a network or a script."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(translator, node):
    """Put the formula into the line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator, node):
    """Put the formula between the lines, in a box that scrolls where it is too wide."""
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math" style="overflow-x: auto">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Mathematics as MathML, which browsers draw by themselves: pages read the same without a network or a script."""

from docutils import nodes
from latex2mathml.converter import convert

BAR = "<mo>&#x02016;</mo>"
BAR_OF_FIXED_SIZE = '<mo stretchy="false">&#x02016;</mo>'


def formula_of(node, **options):
    """The formula as MathML; the bars of a norm keep their size, since a raised square would move stretched ones."""
    return convert(node.astext(), **options).replace(BAR, BAR_OF_FIXED_SIZE)


def inline(translator, node):
    """Put the formula into the line."""
    translator.body.append(formula_of(node))
    raise nodes.SkipNode


def block(translator, node):
    """Put the formula between the lines, in a box that scrolls where it is too wide."""
    formula = formula_of(node, display="block")
    translator.body.append(f'<div class="math" style="overflow-x: auto">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Members of the table learner as ONNX graphs, their differences and their speed; `latency.py --onnx` runs it.

Kernel members with their linear part become a graph of Max, Asinh, MatMul, Exp and the like, in double and in single
precision; boosted trees go through skl2onnx, which is single precision. Differences to what the member itself predicts
are in standard deviations of the predictions, the largest of all rows. Times are processor milliseconds with one
thread. It needs ``pip install onnx onnxruntime skl2onnx``.
"""

import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from threadpoolctl import threadpool_limits

from mercerless import LABRegressor, TableClassifier, TableRegressor

try:
    import onnxruntime
    from onnx import checker, helper, numpy_helper
    from skl2onnx import to_onnx
except ImportError:
    onnxruntime = None

OPSET = 18


class Graph:
    """Nodes of an ONNX graph; calling it adds one and returns the name of its output."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.nodes = []
        self.constants = []

    def constant(self, values, dtype=None):
        """The name of an array."""
        name = f"constant{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype=dtype or self.dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, operation, *inputs):
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, names, [output]))
        return output

    def last_axis_sum(self, name):
        """The sum over the last axis."""
        output = f"value{len(self.nodes)}"
        axes = self.constant([-1], np.int64)
        self.nodes.append(helper.make_node("ReduceSum", [name, axes], [output], keepdims=0))
        return output

    def with_axis(self, name, axis):
        """The array with a further axis of length 1."""
        output = f"value{len(self.nodes)}"
        axes = self.constant([axis], np.int64)
        self.nodes.append(helper.make_node("Unsqueeze", [name, axes], [output]))
        return output

    def model(self, n_features, output):
        """The whole, from rows called X to the output."""
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        rows = helper.make_tensor_value_info("X", kind, [None, n_features])
        values = helper.make_tensor_value_info(output, kind, [None, None])
        graph = helper.make_graph(self.nodes, "member", [rows], [values], self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=9)
        checker.check_model(model)
        return model


def scaled(graph, scaling):
    """Scaled rows."""
    Z = graph("Min", graph("Max", "X", scaling.low), scaling.high)
    Z = graph("Div", graph("Sub", Z, scaling.center), scaling.scale)
    if scaling.robust:
        Z = graph("Sub", graph("Asinh", Z), scaling.second_center)
        Z = graph("Div", Z, scaling.second_scale)
    return Z


def kernel_values(graph, form, Z):
    """The kernel of scaled rows and centers."""
    centers = form.centers.astype(float)
    if form.projection is not None:
        Z = graph("MatMul", Z, form.projection)
        centers = centers @ form.projection
    widths = np.broadcast_to(form.kernel.bandwidths, centers.shape)
    if type(form.kernel).__name__ == "LocalLaplace":
        difference = graph("Sub", graph.with_axis(Z, 1), centers)
        weighted = graph("Div", graph("Abs", difference), widths)
        return graph("Exp", graph("Neg", graph.last_axis_sum(weighted)))
    # the expanded square around the mean of the centers, where it cancels least
    shift = centers.mean(axis=0)
    S = centers - shift
    U = graph("Sub", Z, shift)
    squares = graph("MatMul", graph("Mul", U, U), (1 / widths**2).T)
    products = graph("MatMul", U, (-2 * S / widths**2).T)
    constants = (S**2 / widths**2).sum(axis=1)
    q = graph("Max", graph("Add", graph("Add", squares, products), constants), 0.0)
    if type(form.kernel).__name__ == "LocalGaussian":
        return graph("Exp", graph("Mul", q, -0.5))
    return graph("Exp", graph("Neg", graph("Sqrt", q)))


def graph_of_form(form, dtype):
    """A kernel member with its linear part."""
    graph = Graph(dtype)
    Z = scaled(graph, form.scaling)
    values = graph("MatMul", kernel_values(graph, form, Z), form.dual_coef.T)
    linear = graph("Add", graph("MatMul", Z, form.coef.T), form.intercept)
    return graph.model(form.centers.shape[1], graph("Add", values, linear))


def session(model, output=0):
    """A function that gives one of the outputs of a graph for rows, with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    run = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    kind = run.get_inputs()[0].type
    dtype = np.float64 if "double" in kind else np.float32
    name = run.get_inputs()[0].name
    return lambda rows: run.run(None, {name: rows.astype(dtype)})[output]


def milliseconds(functions, rows, enough=0.3):
    """Median processor milliseconds of each function, called in turn."""
    times = {name: [] for name in functions}
    spent = 0.0
    while spent < enough or len(next(iter(times.values()))) < 3:
        for name, function in functions.items():
            start = time.process_time()
            function(rows)
            times[name].append(time.process_time() - start)
            spent += times[name][-1]
    return {name: 1e3 * float(np.median(values)) for name, values in times.items()}


def kernel_rows(name, member, X, many):
    """Differences and times of a kernel member in both precisions."""
    sessions = {dtype: session(graph_of_form(member, dtype)) for dtype in (np.float64, np.float32)}
    expected = member(X)
    for dtype, predict in sessions.items():
        found = predict(X)
        yield compared(name, kind_of(member), np.dtype(dtype).name, expected, found) | timed(
            member, predict, many
        )


def tree_rows(name, member, X, many):
    """Differences and times of boosted trees, by skl2onnx: what their models predict of scaled rows."""
    Z = member.columns(member.scaling(X, X.dtype))
    for model in member.models[:1]:
        options = {"zipmap": False} if hasattr(model, "classes_") else {}
        try:
            converted = to_onnx(
                model, Z[:1].astype(np.float32), target_opset=OPSET, options={id(model): options}
            )
        except (ValueError, TypeError) as error:
            print(f"{name}: skl2onnx cannot write the trees: {str(error)[:80]}")
            return
        if hasattr(model, "classes_"):
            predict = session(converted, output=1)  # the first one is the classes
            direct = model.predict_proba
        else:
            predict = session(converted)
            direct = model.predict
        of_many = member.columns(member.scaling(many, many.dtype))
        expected = np.asarray(direct(Z)).reshape(len(Z), -1)
        found = np.asarray(predict(Z)).reshape(len(Z), -1)
        yield compared(name, "boosted trees", "float32", expected, found) | timed(
            direct, predict, of_many
        )


def kind_of(form):
    """The kernel in words."""
    return f"{form.name}, {len(form.centers)} centers, {form.centers.dtype}"


def compared(name, member, dtype, expected, found):
    """The largest difference, in standard deviations of what is predicted."""
    spread = np.maximum(expected.std(axis=0), np.finfo(float).tiny)
    difference = float(np.max(np.abs(found - expected) / spread))
    return {"set": name, "member": member, "graph": dtype, "difference": f"{difference:.1e}"}


def timed(ours, theirs, many):
    """Milliseconds of one row and of all."""
    row = {}
    for size in (1, len(many)):
        times = milliseconds({"ours": ours, "ONNX": theirs}, many[:size])
        row |= {f"{who} ms, {size}": f"{value:.3g}" for who, value in times.items()}
    return row


def fitted():
    """Names, rows and members of fitted models."""
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes, TableRegressor", X, TableRegressor(random_state=0).fit(X, y).members_
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, TableClassifier", X, TableClassifier(random_state=0).fit(X, y).members_
    random = np.random.RandomState(0)
    X = random.uniform(size=(1000, 6))
    y = (X[:, 0] > 0.3) * (X[:, 1] > 0.6) + (X[:, 2] > 0.5) + 0.1 * random.normal(size=1000)
    yield "steps, TableRegressor", X, TableRegressor(random_state=0).fit(X, y).members_
    X, y = load_digits(return_X_y=True)
    yield "digits, LABRegressor", X, LABRegressor(random_state=0).fit(X, y)._kernel_forms()


def measure():
    """The rows of the table."""
    if onnxruntime is None:
        sys.exit("skipped: pip install onnx onnxruntime skl2onnx")
    rows = []
    with threadpool_limits(1):
        for name, X, members in fitted():
            many = X[np.random.RandomState(0).randint(len(X), size=10_000)]
            for member in members:
                if type(member).__name__ == "LocalForm":
                    rows += kernel_rows(name, member, X, many)
                elif type(member).__name__ == "Trees":
                    rows += tree_rows(name, member, X, many)
                else:
                    print(f"{name}: {type(member).__name__} has no graph here")
    return rows

# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: its LSTM operator in its own order, steps first, through I/O
binding, so that no call copies."""

import numpy as np
import onnx
import onnxruntime

import answer


class Graph:
    """A row as an ONNX graph."""

    def __init__(self, data):
        self.data, self.row = data, data.row
        self.nodes, self.weights = [], []
        y = "x"
        for number, directions in enumerate(data.layers):
            y = self.lstm(number, directions, y)
        if data.dense:
            y = self.add("Gemm" if not self.row.on_each_step else "MatMul",
                         [y, self.weight("kernel", data.dense[0])] +
                         ([] if self.row.on_each_step else
                          [self.weight("bias", data.dense[1])]))
            if self.row.on_each_step:
                y = self.add("Add", [y, self.weight("bias", data.dense[1])])
                y = self.add("Softmax", [y], axis=-1)
        self.result = y

    def weight(self, name, array):
        self.weights.append(onnx.numpy_helper.from_array(
            np.ascontiguousarray(array), name))
        return name

    def add(self, kind, inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(onnx.helper.make_node(kind, inputs, names,
                                                **attributes))
        return names[0] if outputs == 1 else names

    def lstm(self, number, directions, x):
        row, order = self.row, (0, 3, 1, 2)  # i, o, f, c
        stack = [np.stack([answer.reordered(w[kind], order).T
                           for w in directions]) for kind in range(3)]
        stack[2] = np.concatenate([stack[2], np.zeros_like(stack[2])], -1)
        inputs = [x] + [self.weight(f"{kind}{number}", array)
                        for kind, array in zip("WRB", stack)]
        if row.ragged:
            inputs.append(self.weight(f"lengths{number}", self.data.lengths))
        attributes = {}
        if row.hard_gates:
            attributes = {
                "activations": ["HardSigmoid", "Tanh", "Tanh"],
                "activation_alpha": [1 / 6], "activation_beta": [0.5]}
        y, last, _ = self.add(
            "LSTM", inputs, 3, hidden_size=row.hidden,
            direction="bidirectional" if row.directions == 2 else "forward",
            **attributes)
        if row.dense and not row.on_each_step:
            return self.add("Squeeze", [last, self.axis(number, 0)])
        if row.directions == 1:
            return self.add("Squeeze", [y, self.axis(number, 1)])
        y = self.add("Transpose", [y], perm=[0, 2, 1, 3])
        shape = self.weight(f"shape{number}", np.array(
            [row.steps, row.batch, 2 * row.hidden], np.int64))
        return self.add("Reshape", [y, shape])

    def axis(self, number, axis):
        return self.weight(f"axis{number}", np.array([axis], np.int64))

    def model(self, shape, result_shape):
        return as_model(self.nodes, shape, self.result, result_shape,
                        self.weights)


def as_model(nodes, shape, result, result_shape, weights=()):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "row", [value("x", onnx.TensorProto.FLOAT, shape)],
        [value(result, onnx.TensorProto.FLOAT, result_shape)], list(weights))
    return onnx.helper.make_model(
        graph, ir_version=10,
        opset_imports=[onnx.helper.make_opsetid("", 22)]).SerializeToString()


def result_shape(row):
    if not row.dense:
        return [row.steps, row.batch, row.hidden * row.directions]
    return ([row.steps] if row.on_each_step else []) + [row.batch, row.dense]


class Peer:
    def __init__(self, threads):
        self.threads = threads
        self.version = f"ONNX Runtime {onnxruntime.__version__}"

    def bound(self, model, name, x, shape):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"])
        result = onnxruntime.OrtValue.ortvalue_from_numpy(
            np.zeros(shape, np.float32))
        binding = session.io_binding()
        binding.bind_ortvalue_input(
            "x", onnxruntime.OrtValue.ortvalue_from_numpy(x))
        binding.bind_ortvalue_output(name, result)

        def run():
            session.run_with_iobinding(binding)
            return result
        return run

    def configurations(self, data):
        graph, shape = Graph(data), result_shape(data.row)
        model = graph.model(list(data.x.shape), shape)
        return [("LSTM", self.bound(model, graph.result, data.x, shape))]

    def array(self, result):
        return result.numpy()

    def smallest(self):
        node = onnx.helper.make_node("Identity", ["x"], ["y"])
        return self.bound(as_model([node], [1], "y", [1]), "y",
                          np.zeros(1, np.float32), [1])


if __name__ == "__main__":
    answer.main(Peer)

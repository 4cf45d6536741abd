# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: LSTMSequence in its own order, rows first, at float32, in the
latency mode, over memory that it shares with the caller."""

import numpy as np
import openvino
from openvino import opset13 as ops

import answer


def build(data):
    row = data.row
    x = ops.parameter([row.batch, row.steps, row.input], np.float32)
    y = x
    for directions in data.layers:
        y, last = lstm(data, directions, y)
    if row.dense:
        kernel, bias = (np.ascontiguousarray(a) for a in data.dense)
        y = ops.add(ops.matmul(y if row.on_each_step else last, kernel, False,
                               False), bias)
        if row.on_each_step:
            y = ops.softmax(y, -1)
    return openvino.Model([y], [x], "row")


def lstm(data, directions, x):
    """The sequence [batch][steps][features] and its last step, of a layer."""
    row, order, count = data.row, (1, 0, 2, 3), len(directions)  # f, i, c, o
    w, r, b = (np.stack([answer.reordered(of[kind], order).T
                         for of in directions]) for kind in range(3))
    zero = np.zeros((row.batch, count, row.hidden), np.float32)
    lengths = data.lengths if row.ragged else \
        np.full(row.batch, row.steps, np.int32)
    attributes = {}
    if row.hard_gates:
        attributes = {"activations": ["hardsigmoid", "tanh", "tanh"],
                      "activations_alpha": [1 / 6], "activations_beta": [0.5]}
    made = ops.lstm_sequence(
        x, zero, zero, lengths, w, r, b, row.hidden,
        "bidirectional" if count == 2 else "forward", **attributes)
    if count == 1:
        return (ops.squeeze(made.output(0), np.array([1])),
                ops.squeeze(made.output(1), np.array([1])))
    y = ops.transpose(made.output(0), np.array([0, 2, 1, 3]))
    return ops.reshape(y, np.array([row.batch, row.steps, 2 * row.hidden]),
                       False), None


class Peer:
    def __init__(self, threads):
        self.core = openvino.Core()
        self.options = {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32"}
        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"

    def runner(self, model, x):
        request = self.core.compile_model(
            model, "CPU", self.options).create_infer_request()
        request.set_input_tensor(openvino.Tensor(x, shared_memory=True))

        request.x = x  # the tensor does not keep it alive

        def run():
            request.start_async()
            request.wait()
            return request

        def straight():
            request.infer(share_outputs=True)
            return request
        return run, straight

    def configurations(self, data):
        try:
            model = build(data)
            asynchronous, straight = self.runner(model, data.batch_major())
        except RuntimeError as error:
            if data.row.hard_gates:
                raise answer.Refused(
                    "LSTMSequence has no hard_sigmoid gates") from error
            raise
        return [("infer", straight), ("start, wait", asynchronous)]

    def array(self, request):
        return answer.time_major(request.get_output_tensor(0).data)

    def smallest(self):
        x = ops.parameter([1], np.float32)
        model = openvino.Model([ops.relu(x)], [x], "smallest")
        return self.runner(model, np.zeros(1, np.float32))[1]


if __name__ == "__main__":
    answer.main(Peer)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/oracle/literals.h: results of other LSTMs, for test_oracle.

usage: make_literals.py keras|onnx|torch; make_literals.sh puts the header
together. Each part needs only its own framework:
Keras (TensorFlow backend, float64), ONNX Runtime (float32, the only type of its
CPU LSTM), PyTorch (float64, for projections). Inputs come from a generator
that is written out here, so they are the same whatever the framework.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np


class Numbers:
    """A linear congruential generator; numbers of 1/64, exact in float32."""

    def __init__(self, seed):
        self.state = seed

    def array(self, *shape, scale=1.0):
        out = np.empty(int(np.prod(shape)))
        for i in range(out.size):
            self.state = (self.state * 1103515245 + 12345) % 2**31
            out[i] = ((self.state >> 16) % 129 - 64) / 64 * scale
        return out.reshape(shape)


def show(name, values):
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    print(f"static const double {name}[] = {{")
    for i in range(0, flat.size, 3):
        print("    " + " ".join(f"{v:.17g}," for v in flat[i : i + 3]))
    print("};")


def show_floats(name, values):
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    assert np.all(flat == flat.astype(np.float32).astype(np.float64))
    print(f"static const float {name}[] = {{")
    for i in range(0, flat.size, 4):
        print("    " + " ".join(f"{v:#.9g}f," for v in flat[i : i + 4]))
    print("};")


# ---- Keras ------------------------------------------------------------------


def keras_part():
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow

    keras.config.set_floatx("float64")
    print(f"/* Keras {keras.__version__}, TensorFlow {tensorflow.__version__},"
          f" NumPy {np.__version__}; float64 */")

    def layer(name, n_in, units, batch, steps, state, **options):
        numbers = Numbers(len(name) * 101)
        x = numbers.array(batch, steps, n_in)
        kernel = numbers.array(n_in, 4 * units)
        recurrent = numbers.array(units, 4 * units)
        bias = numbers.array(4 * units)
        h0, c0 = numbers.array(batch, units), numbers.array(batch, units)
        lstm = keras.layers.LSTM(units, return_sequences=True,
                                 return_state=True, **options)
        lstm.build((batch, steps, n_in))
        lstm.set_weights([kernel, recurrent, bias])
        initial = [h0, c0] if state else None
        y, h, c = lstm(x, initial_state=initial)
        show_floats(f"{name}_x", x)
        show_floats(f"{name}_kernel", kernel)
        show_floats(f"{name}_recurrent", recurrent)
        show_floats(f"{name}_bias", bias)
        show_floats(f"{name}_h0", h0)
        show_floats(f"{name}_c0", c0)
        show(f"{name}_y", y)
        show(f"{name}_h", h)
        show(f"{name}_c", c)

    layer("keras_plain", 3, 2, 2, 3, False)
    layer("keras_relu", 2, 3, 2, 3, True, activation="softsign",
          recurrent_activation="hard_sigmoid")
    print("/* Activations at -12, -3, -1, -0.25, 0, 0.25, 1, 3, 12. */")
    at = np.array([-12, -3, -1, -0.25, 0, 0.25, 1, 3, 12.0])
    a = keras.activations
    ops = keras.ops
    table = [
        ("tanh", a.tanh), ("sigmoid", a.sigmoid), ("linear", a.linear),
        ("relu", a.relu),
        ("leaky_relu", lambda v: a.leaky_relu(v, negative_slope=0.25)),
        ("relu6", a.relu6), ("elu", lambda v: a.elu(v, alpha=0.75)),
        ("selu", a.selu), ("celu", lambda v: a.celu(v, alpha=1.5)),
        ("softplus", a.softplus), ("softsign", a.softsign),
        ("squareplus", lambda v: a.squareplus(v, b=4)),
        ("soft_shrink", lambda v: a.soft_shrink(v, threshold=0.5)),
        ("hard_shrink", lambda v: a.hard_shrink(v, threshold=0.5)),
        ("sparse_plus", a.sparse_plus), ("silu", a.silu),
        ("gelu_erf", lambda v: a.gelu(v, approximate=False)),
        ("gelu_tanh", lambda v: a.gelu(v, approximate=True)),
        ("tanh_shrink", a.tanh_shrink),
        ("threshold", lambda v: a.threshold(v, 0.5, -0.75)),
        ("sparse_sigmoid", a.sparse_sigmoid), ("exponential", a.exponential),
        ("hard_sigmoid", a.hard_sigmoid), ("hard_silu", a.hard_silu),
        ("hard_tanh", a.hard_tanh), ("mish", a.mish),
        ("log_sigmoid", a.log_sigmoid),
    ]
    for name, function in table:
        show(f"activation_{name}", function(ops.convert_to_tensor(at)))
    x = Numbers(7).array(2, 4)
    show_floats("softmax_x", x)
    show("softmax_y", a.softmax(ops.convert_to_tensor(x)))


# ---- ONNX Runtime -----------------------------------------------------------


def onnx_part():
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    print(f"/* ONNX Runtime {onnxruntime.__version__}, onnx"
          f" {onnx.__version__}; float32 */")
    order = [0, 2, 3, 1]  # ONNX's i o f c in the order i f c o

    def run(name, n_in, hidden, batch, steps, directions, lengths=None,
            peepholes=False, **attributes):
        numbers = Numbers(len(name) * 211)
        x = numbers.array(steps, batch, n_in)
        w = numbers.array(directions, 4, hidden, n_in)
        r = numbers.array(directions, 4, hidden, hidden)
        b = numbers.array(directions, 4, hidden)
        h0 = numbers.array(directions, batch, hidden)
        c0 = numbers.array(directions, batch, hidden)
        p = numbers.array(directions, 3, hidden)  # i o f
        zeros = np.zeros_like(b)
        feed = {
            "X": x, "W": w.reshape(directions, 4 * hidden, n_in),
            "R": r.reshape(directions, 4 * hidden, hidden),
            "B": np.concatenate([b, zeros], axis=1).reshape(directions, -1),
            "h0": h0, "c0": c0,
        }
        names = ["X", "W", "R", "B", "", "h0", "c0", ""]
        if lengths is not None:
            names[4] = "lengths"
        if peepholes:
            names[7] = "P"
            feed["P"] = p.reshape(directions, 3 * hidden)
        node = helper.make_node(
            "LSTM", names, ["Y", "Yh", "Yc"], hidden_size=hidden,
            direction="bidirectional" if directions == 2 else "forward",
            **attributes)
        inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape)
                  for k, v in feed.items()]
        feed = {k: v.astype(np.float32) for k, v in feed.items()}
        if lengths is not None:
            inputs.append(helper.make_tensor_value_info(
                "lengths", TensorProto.INT32, [batch]))
            feed["lengths"] = np.array(lengths, dtype=np.int32)
        outputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, None)
                   for k in ("Y", "Yh", "Yc")]
        graph = helper.make_graph([node], "lstm", inputs, outputs)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 14)])
        model.ir_version = 8
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"])
        y, h, c = session.run(None, feed)
        # To Cellgate's layouts: y [batch][steps][direction, hidden], kernels
        # [direction][in][4][hidden], peepholes i f o.
        show_floats(f"{name}_x", x.transpose(1, 0, 2))
        show_floats(f"{name}_kernel", w[:, order].transpose(0, 3, 1, 2))
        show_floats(f"{name}_recurrent", r[:, order].transpose(0, 3, 1, 2))
        show_floats(f"{name}_bias", b[:, order])
        show_floats(f"{name}_h0", h0)
        show_floats(f"{name}_c0", c0)
        if peepholes:
            show_floats(f"{name}_peephole", p[:, [0, 2, 1]])
        show(f"{name}_y", y.transpose(2, 0, 1, 3))
        show(f"{name}_h", h)
        show(f"{name}_c", c)

    run("onnx_both", 3, 2, 3, 4, 2, lengths=[4, 1, 3])
    run("onnx_peepholes", 2, 3, 2, 3, 1, peepholes=True)
    run("onnx_coupled", 2, 3, 2, 3, 1, input_forget=1)
    run("onnx_clip", 3, 2, 2, 4, 2, clip=0.375)
    run("onnx_everything", 2, 3, 2, 4, 2, peepholes=True, clip=0.75,
        input_forget=1, lengths=[2, 4],
        activations=["HardSigmoid", "ScaledTanh", "Affine", "Sigmoid",
                     "LeakyRelu", "Tanh"],
        activation_alpha=[0.25, 1.5, 0.5, 0.125],
        activation_beta=[0.5, 0.75, 0.25])


# ---- PyTorch ----------------------------------------------------------------


def torch_part():
    import torch

    print(f"/* PyTorch {torch.__version__}; float64 */")

    def run(name, n_in, hidden, size, batch, steps, directions):
        numbers = Numbers(len(name) * 307)
        x = numbers.array(batch, steps, n_in)
        h0 = numbers.array(directions, batch, size)
        c0 = numbers.array(directions, batch, hidden)
        kernel = numbers.array(directions, n_in, 4 * hidden)
        recurrent = numbers.array(directions, size, 4 * hidden)
        bias = numbers.array(directions, 4 * hidden)
        projection = numbers.array(directions, hidden, size)
        lstm = torch.nn.LSTM(n_in, hidden, proj_size=size, batch_first=True,
                             bidirectional=directions == 2,
                             dtype=torch.float64)
        with torch.no_grad():
            for d, end in enumerate(["", "_reverse"][:directions]):
                def put(which, value):
                    parameter = getattr(lstm, f"{which}_l0{end}")
                    parameter.copy_(torch.from_numpy(value))
                put("weight_ih", kernel[d].T.copy())
                put("weight_hh", recurrent[d].T.copy())
                put("bias_ih", bias[d])
                put("bias_hh", np.zeros(4 * hidden))
                put("weight_hr", projection[d].T.copy())
            y, (h, c) = lstm(torch.from_numpy(x),
                             (torch.from_numpy(h0), torch.from_numpy(c0)))
        show_floats(f"{name}_x", x)
        show_floats(f"{name}_kernel", kernel)
        show_floats(f"{name}_recurrent", recurrent)
        show_floats(f"{name}_bias", bias)
        show_floats(f"{name}_projection", projection)
        show_floats(f"{name}_h0", h0)
        show_floats(f"{name}_c0", c0)
        show(f"{name}_y", y.numpy())
        show(f"{name}_h", h.numpy())
        show(f"{name}_c", c.numpy())

    run("torch_projected", 3, 4, 2, 2, 3, 1)
    run("torch_projected_both", 2, 3, 2, 2, 4, 2)


if __name__ == "__main__":
    {"keras": keras_part, "onnx": onnx_part, "torch": torch_part}[sys.argv[1]]()

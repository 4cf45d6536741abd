# SPDX-License-Identifier: Apache-2.0
"""PyTorch: nn.LSTM in inference mode, as it is and compiled with its weights
frozen, which lays them out once."""

import importlib.metadata

import torch

import answer


class Model(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        row = data.row
        self.lstm = torch.nn.LSTM(row.input, row.hidden, row.layers,
                                  bidirectional=row.directions == 2)
        with torch.no_grad():
            for layer, directions in enumerate(data.layers):
                for name, weights in zip(("", "_reverse"), directions):
                    self.fill(f"l{layer}{name}", *weights)
        self.dense, self.last = None, not row.on_each_step
        if row.dense:
            self.dense = torch.nn.Linear(row.hidden * row.directions,
                                         row.dense)
            with torch.no_grad():
                self.dense.weight.copy_(torch.tensor(data.dense[0].T.copy()))
                self.dense.bias.copy_(torch.tensor(data.dense[1]))

    def fill(self, name, kernel, recurrent, bias):
        """Its gates have the order i, f, g, o; of its two biases one is 0."""
        for kind, array in (("weight_ih", kernel), ("weight_hh", recurrent),
                            ("bias_ih", bias)):
            getattr(self.lstm, f"{kind}_{name}").copy_(
                torch.tensor(array.T.copy()))
        getattr(self.lstm, f"bias_hh_{name}").zero_()

    def forward(self, x):
        y, _ = self.lstm(x)
        if self.dense is None:
            return y
        if self.last:
            return self.dense(y[-1])
        return torch.softmax(self.dense(y), -1)


class Peer:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch._dynamo.config.allow_rnn = True
        torch._inductor.config.freezing = True
        self.version = f"PyTorch {importlib.metadata.version('torch')}"

    def configurations(self, data):
        if data.row.hard_gates:
            raise answer.Refused("nn.LSTM has no hard_sigmoid gates")
        torch._dynamo.reset()
        model = Model(data).eval()
        x = torch.from_numpy(data.x)
        made = [("eager", self.run(model, x)),
                ("compiled", self.run(torch.compile(model), x))]
        if data.lengths is not None:
            made.append(("packed", self.packed(model, x, data.lengths)))
        return made

    def run(self, model, x):
        def run():
            with torch.inference_mode():
                return model(x)
        return run

    def packed(self, model, x, lengths):
        """A ragged batch as PyTorch wants it: rows sorted, steps packed."""
        lengths = torch.from_numpy(lengths).long()

        def run():
            with torch.inference_mode():
                packed = torch.nn.utils.rnn.pack_padded_sequence(
                    x, lengths, enforce_sorted=False)
                y, _ = model.lstm(packed)
                return torch.nn.utils.rnn.pad_packed_sequence(y)[0]
        return run

    def array(self, result):
        return result.numpy()

    def smallest(self):
        return self.run(torch.nn.Identity(), torch.zeros(1))


if __name__ == "__main__":
    answer.main(Peer)

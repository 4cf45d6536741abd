/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/arithmetic.h"
#include "tests/plugins/remote/kernels.h"

/* What a launch works on, once it is mapped and checked. */
struct lstm_work {
    const struct remote_op *op;
    const cellgate_activation *activations;
    enum remote_pack pack;
    const void *kernel, *recurrent_kernel, *projection;
    const float *bias;
    float *sums;   /* [4H] */
    float *hidden; /* [H] */
};

/* One step of one row: h and c become the new state. */
static void step(const struct lstm_work *work, const float *x, float *h,
                 float *c)
{
    const struct remote_op *op = work->op;
    const int64_t H = op->hidden;
    const cellgate_activation *gate = &work->activations[0];
    int64_t k;

    remote_start_sums(work->bias, 4 * H, work->sums);
    remote_multiply(work->pack, x, op->input, work->kernel, 4 * H, work->sums);
    remote_multiply(work->pack, h, op->recurrent, work->recurrent_kernel, 4 * H,
                    work->sums);
    for (k = 0; k < H; k++) {
        float i = remote_activate(gate, remote_limit(work->sums[k], op->clip));
        float f =
            remote_activate(gate, remote_limit(work->sums[H + k], op->clip));
        float g =
            remote_activate(&work->activations[1],
                            remote_limit(work->sums[2 * H + k], op->clip));
        float o = remote_activate(
            gate, remote_limit(work->sums[3 * H + k], op->clip));
        c[k] = f * c[k] + i * g;
        work->hidden[k] = o * remote_activate(&work->activations[2], c[k]);
    }
    if (op->projects) {
        remote_start_sums(NULL, op->recurrent, h);
        remote_multiply(work->pack, work->hidden, H, work->projection,
                        op->recurrent, h);
    } else {
        memcpy(h, work->hidden, (size_t)H * sizeof *h);
    }
}

/* Finds everything but the rows; the view that lacks something, or NULL. */
static const struct remote_view *
find_work(const struct remote_lstm_launch *launch,
          const struct remote_view *views, struct lstm_work *work)
{
    const struct remote_op *op = launch->op;
    const int64_t gates = 4 * op->hidden;

    work->op = op;
    work->activations = op->activations[launch->direction];
    work->pack = launch->pack;
    work->kernel = remote_matrix(&views[REMOTE_LSTM_KERNEL], work->pack,
                                 op->input * gates);
    if (work->kernel == NULL)
        return &views[REMOTE_LSTM_KERNEL];
    work->recurrent_kernel = remote_matrix(&views[REMOTE_LSTM_RECURRENT_KERNEL],
                                           work->pack, op->recurrent * gates);
    if (work->recurrent_kernel == NULL)
        return &views[REMOTE_LSTM_RECURRENT_KERNEL];
    work->bias = remote_floats(&views[REMOTE_LSTM_BIAS], 0, gates);
    if (op->has_bias && work->bias == NULL)
        return &views[REMOTE_LSTM_BIAS];
    work->projection = remote_matrix(&views[REMOTE_LSTM_PROJECTION], work->pack,
                                     op->hidden * op->recurrent);
    if (op->projects && work->projection == NULL)
        return &views[REMOTE_LSTM_PROJECTION];
    work->sums =
        remote_floats(&views[REMOTE_LSTM_WORKSPACE], 0, gates + op->hidden);
    if (work->sums == NULL)
        return &views[REMOTE_LSTM_WORKSPACE];
    work->hidden = work->sums + gates;
    return NULL;
}

/* Output `h` of one row at step t, or zeros for NULL, into the sequence. */
static bool put(const struct remote_lstm_launch *launch,
                const struct remote_view *view, int64_t row, const float *h)
{
    const int64_t R = launch->op->recurrent;
    float *out;

    if (view->base == NULL)
        return true;
    out = remote_floats(view,
                        row * launch->op->features + launch->direction * R, R);
    if (out == NULL)
        return false;
    if (h != NULL)
        memcpy(out, h, (size_t)R * sizeof *out);
    else
        memset(out, 0, (size_t)R * sizeof *out);
    return true;
}

/* All steps of row b; the view that was left, or NULL. */
static const struct remote_view *
run_row(const struct remote_lstm_launch *launch,
        const struct remote_view *views, const struct lstm_work *work,
        int64_t b)
{
    const struct remote_op *op = launch->op;
    const int64_t T = launch->steps;
    const int64_t state = launch->direction * launch->batch + b;
    const bool backwards = launch->direction == 1 || op->reverse;
    const struct remote_view *sequence = &views[REMOTE_LSTM_SEQUENCE_OUT];
    const struct remote_view *last = &views[REMOTE_LSTM_LAST_OUT];
    const int32_t *length =
        remote_at(&views[REMOTE_LSTM_LENGTHS], (size_t)b * sizeof *length,
                  sizeof *length);
    float *h = remote_floats(&views[REMOTE_LSTM_H], state * op->recurrent,
                             op->recurrent);
    float *c =
        remote_floats(&views[REMOTE_LSTM_C], state * op->hidden, op->hidden);
    int64_t done;

    if (length == NULL)
        return &views[REMOTE_LSTM_LENGTHS];
    if (h == NULL)
        return &views[REMOTE_LSTM_H];
    if (c == NULL)
        return &views[REMOTE_LSTM_C];
    for (done = 0; done < *length; done++) {
        const int64_t t = b * T + (backwards ? *length - 1 - done : done);
        const float *x =
            remote_floats(&views[REMOTE_LSTM_INPUT], t * op->input, op->input);
        if (x == NULL)
            return &views[REMOTE_LSTM_INPUT];
        step(work, x, h, c);
        if (!put(launch, sequence, t, h))
            return sequence;
    }
    for (; done < T; done++)
        if (!put(launch, sequence, b * T + done, NULL))
            return sequence;
    return put(launch, last, b, *length > 0 ? h : NULL) ? NULL : last;
}

cellgate_status remote_lstm_kernel(struct remote_memory *memory,
                                   const struct remote_lstm_launch *launch,
                                   cellgate_error *error)
{
    struct remote_view views[REMOTE_LSTM_BUFFERS];
    const struct remote_view *left;
    struct lstm_work work;
    int64_t b;
    cellgate_status status = remote_map_all(memory, launch->buffers,
                                            REMOTE_LSTM_BUFFERS, views, error);

    if (status != CELLGATE_OK)
        return status;
    left = find_work(launch, views, &work);
    for (b = 0; left == NULL && b < launch->batch; b++)
        left = run_row(launch, views, &work, b);
    if (left != NULL)
        status = remote_outside(memory, left, "an LSTM kernel", error);
    remote_unmap_all(memory, REMOTE_LSTM_BUFFERS, views);
    return status;
}

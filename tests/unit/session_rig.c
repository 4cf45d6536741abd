/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

/* ---- Numbers ----------------------------------------------------------- */

/* xorshift64*, Marsaglia and Vigna. */
uint32_t rig_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)((x * UINT64_C(2685821657736338717)) >> 32);
}

int32_t rig_between(uint64_t *state, int32_t lowest, int32_t highest)
{
    return lowest +
           (int32_t)(rig_random(state) % (uint32_t)(highest - lowest + 1));
}

float rig_float(uint64_t *state)
{
    return (float)(rig_random(state) >> 8) / 8388608.0f - 1;
}

/* ---- Models ------------------------------------------------------------ */

static char *rig_name(rig_model *rig, char *name, const char *prefix)
{
    sprintf(name, "%s_%d", prefix, rig->count++);
    return name;
}

void rig_model_begin(rig_model *rig, uint64_t seed)
{
    rig->random = seed * 2 + 1;
    rig->count = 0;
    assert_int_equal(cg_model_create("rig", "native", "1", &rig->model, NULL),
                     CELLGATE_OK);
}

cellgate_model *rig_model_end(rig_model *rig)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cg_model_finish(rig->model, &error) != CELLGATE_OK)
        fail_msg("the model of the rig: %s", error.text);
    return rig->model;
}

int32_t rig_input(rig_model *rig, int64_t steps, int64_t features)
{
    int64_t shape[3] = { CG_UNKNOWN, steps, features };
    char name[32];
    int32_t value;

    assert_int_equal(
        cg_model_add_value(rig->model, rig_name(rig, name, "x"),
                           features > 0 ? CELLGATE_F32 : CELLGATE_I32,
                           features > 0 ? 3 : 2, shape, &value, NULL),
        CELLGATE_OK);
    assert_int_equal(cg_model_add_input(rig->model, value, NULL), CELLGATE_OK);
    return value;
}

int32_t rig_row_input(rig_model *rig, int64_t features)
{
    const int64_t shape[2] = { CG_UNKNOWN, features };
    char name[32];
    int32_t value;

    assert_int_equal(cg_model_add_value(rig->model, rig_name(rig, name, "row"),
                                        CELLGATE_F32, 2, shape, &value, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_model_add_input(rig->model, value, NULL), CELLGATE_OK);
    return value;
}

int32_t rig_mask(const rig_model *rig, size_t input)
{
    return rig->model->inputs[input].mask;
}

void rig_output(rig_model *rig, int32_t value)
{
    assert_int_equal(cg_model_add_output(rig->model, value, NULL), CELLGATE_OK);
}

static int32_t new_value(rig_model *rig, int32_t dtype)
{
    char name[32];
    int32_t value;

    assert_int_equal(cg_model_add_value(rig->model, rig_name(rig, name, "v"),
                                        dtype, 0, NULL, &value, NULL),
                     CELLGATE_OK);
    return value;
}

static void add_node(rig_model *rig, cg_node *node)
{
    size_t count = cg_node_weight_count(node);
    cg_weight weights[2 * CG_LSTM_WEIGHTS];
    cellgate_error error = CELLGATE_ERROR_INIT;
    char name[32];

    node->name = node->layer = rig_name(rig, name, "node");
    memset(weights, 0, sizeof weights);
    for (size_t at = 0; at < count; at++) {
        int64_t size = 1;
        float *data;

        if (!cg_node_weight(node, at, &weights[at]))
            continue;
        for (int32_t axis = 0; axis < weights[at].rank; axis++)
            size *= weights[at].shape[axis];
        data = cg_model_memory(rig->model, (size_t)size * sizeof *data);
        assert_non_null(data);
        for (int64_t k = 0; k < size; k++)
            data[k] = rig_float(&rig->random) /
                      sqrtf((float)weights[at].shape[0] / 2 + 1);
        weights[at].data = data;
    }
    node->weights = weights;
    node->weight_count = count;
    if (cg_model_add_node(rig->model, node, &error) != CELLGATE_OK)
        fail_msg("a node of the rig: %s", error.text);
}

void rig_lstm_init(rig_lstm *lstm, int64_t input_size, int64_t hidden_size)
{
    memset(lstm, 0, sizeof *lstm);
    lstm->shape.input_size = input_size;
    lstm->shape.hidden_size = hidden_size;
    lstm->shape.directions = 1;
    lstm->shape.has_bias = 1;
    lstm->shape.activations[0][0].kind = CELLGATE_SIGMOID;
    lstm->shape.activations[1][0].kind = CELLGATE_SIGMOID;
    lstm->mask = CG_NO_VALUE;
    for (int state = 0; state < 4; state++)
        lstm->initial[state] = CG_NO_VALUE;
}

void rig_add_lstm(rig_model *rig, int32_t x, rig_lstm *lstm)
{
    size_t states = 2 * (size_t)lstm->shape.directions;
    int32_t inputs[6] = { x, lstm->mask }, outputs[6] = { 0 };
    cg_node node = { .kind = CG_LSTM };

    for (size_t state = 0; state < states; state++)
        inputs[2 + state] = lstm->initial[state];
    for (size_t at = 0; at < 2 + states; at++)
        outputs[at] = new_value(rig, CELLGATE_F32);
    lstm->sequence = outputs[0];
    lstm->last = outputs[1];
    for (size_t state = 0; state < states; state++)
        lstm->final[state] = outputs[2 + state];
    node.as.lstm.shape = lstm->shape;
    node.as.lstm.zero_masked = lstm->zero_masked;
    node.inputs = inputs;
    node.outputs = outputs;
    node.input_count = node.output_count = 2 + states;
    add_node(rig, &node);
}

void rig_add_recurrent(rig_model *rig, int32_t x, rig_recurrent *recurrent)
{
    int32_t inputs[3] = { x, recurrent->mask, recurrent->initial };
    int32_t outputs[3];
    cg_node node = { .kind = recurrent->kind,
                     .inputs = inputs,
                     .input_count = 3,
                     .outputs = outputs,
                     .output_count = 3 };

    for (size_t at = 0; at < 3; at++)
        outputs[at] = new_value(rig, CELLGATE_F32);
    recurrent->sequence = outputs[0];
    recurrent->last = outputs[1];
    recurrent->final = outputs[2];
    node.as.recurrent = (cg_recurrent){ .input_size = recurrent->input_size,
                                        .hidden_size = recurrent->hidden_size,
                                        .has_bias = true,
                                        .reset_after = recurrent->reset_after,
                                        .gate.kind = CELLGATE_SIGMOID,
                                        .activation.kind = CELLGATE_TANH };
    add_node(rig, &node);
}

int32_t rig_node(rig_model *rig, const cg_node *attributes, int32_t x)
{
    bool mask =
        attributes->kind == CG_NONZERO || attributes->kind == CG_NOT_EQUAL;
    int32_t y = new_value(rig, mask ? CELLGATE_U8 : CELLGATE_F32);
    cg_node node = *attributes;

    node.inputs = &x;
    node.outputs = &y;
    node.input_count = node.output_count = 1;
    add_node(rig, &node);
    return y;
}

int32_t rig_simple(rig_model *rig, cg_kind kind, int32_t x)
{
    const cg_node node = { .kind = kind };

    return rig_node(rig, &node, x);
}

int32_t rig_activation(rig_model *rig, int32_t x, int32_t kind)
{
    cg_node node = { .kind = CG_ACTIVATION };

    node.as.activation.kind = kind;
    return rig_node(rig, &node, x);
}

int32_t rig_dense(rig_model *rig, int32_t x, int64_t input_size, int64_t units,
                  int32_t activation)
{
    cg_node node = { .kind = CG_DENSE };

    node.as.dense.input_size = input_size;
    node.as.dense.units = units;
    node.as.dense.has_bias = true;
    node.as.dense.activation.kind = activation;
    return rig_node(rig, &node, x);
}

int32_t rig_embedding(rig_model *rig, int32_t ids, int64_t vocabulary,
                      int64_t size)
{
    cg_node node = { .kind = CG_EMBEDDING };

    node.as.embedding.vocabulary = vocabulary;
    node.as.embedding.size = size;
    return rig_node(rig, &node, ids);
}

/* ---- Runtimes ---------------------------------------------------------- */

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static char log_text[4096];
static const char *log_watched;
static int log_count;

static void keep_line(void *context, int32_t level, const char *text)
{
    size_t used;

    (void)context;
    pthread_mutex_lock(&log_mutex);
    used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%d %s\n", (int)level,
             text);
    log_count += log_watched != NULL && strstr(text, log_watched) != NULL;
    pthread_mutex_unlock(&log_mutex);
}

void rig_log_watch(const char *text)
{
    pthread_mutex_lock(&log_mutex);
    log_watched = text;
    log_count = 0;
    pthread_mutex_unlock(&log_mutex);
}

int rig_log_watched(void)
{
    int count;

    pthread_mutex_lock(&log_mutex);
    count = log_count;
    pthread_mutex_unlock(&log_mutex);
    return count;
}

bool rig_logged(int32_t level, const char *text)
{
    char line[16];
    bool found;

    snprintf(line, sizeof line, "%d ", (int)level);
    pthread_mutex_lock(&log_mutex);
    found = strncmp(log_text, line, strlen(line)) == 0 &&
            strstr(log_text, text) != NULL;
    pthread_mutex_unlock(&log_mutex);
    return found;
}

cellgate_runtime *rig_runtime(const char *config)
{
    char path[] = "/tmp/cellgate-test-XXXXXX";
    int file = mkstemp(path);
    cellgate_runtime_options options = { .struct_size = sizeof options };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;
    cellgate_status status;

    assert_true(file >= 0);
    assert_int_equal(write(file, config, strlen(config)), strlen(config));
    close(file);
    options.config_path = path;
    options.plugin_path =
        RIG_BUILDDIR "/.libs:" RIG_BUILDDIR "/tests/plugins/remote/.libs";
    options.log = keep_line;
    log_text[0] = '\0';
    status = cellgate_runtime_create(&options, &runtime, &error);
    unlink(path);
    if (status != CELLGATE_OK)
        fail_msg("the runtime of the rig: %s", error.text);
    return runtime;
}

cellgate_session *rig_session(cellgate_runtime *runtime,
                              const cellgate_model *model, const char *device,
                              const char *variant)
{
    cellgate_session_options options = { .struct_size = sizeof options,
                                         .device = device,
                                         .variant = variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;

    if (cellgate_session_create(runtime, model, &options, &session, &error) !=
        CELLGATE_OK)
        fail_msg("a session of the rig on %s: %s",
                 device != NULL ? device : "the first device", error.text);
    return session;
}

/* ---- Requests ---------------------------------------------------------- */

static int64_t tensor_elements(const cellgate_tensor *tensor)
{
    int64_t count = 1;

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= tensor->shape[axis];
    return count;
}

static void *tensor_memory(const cellgate_tensor *tensor)
{
    void *memory = calloc((size_t)tensor_elements(tensor) + 1, 4);

    assert_non_null(memory);
    return memory;
}

static void fill_tensor(const cellgate_tensor *tensor, int32_t vocabulary,
                        uint64_t *random)
{
    const int64_t count = tensor_elements(tensor);

    for (int64_t at = 0; at < count; at++)
        if (tensor->dtype == CELLGATE_I32)
            ((int32_t *)tensor->data)[at] =
                rig_between(random, 0, vocabulary - 1);
        else
            ((float *)tensor->data)[at] = rig_float(random);
}

static void input_init(cellgate_input *input, const cellgate_model *model,
                       size_t index, int64_t batch, int64_t steps,
                       int32_t vocabulary, uint64_t *random)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_tensor *tensor = &input->tensor;

    assert_int_equal(cellgate_model_input_get(model, index, &info),
                     CELLGATE_OK);
    input->struct_size = sizeof *input;
    tensor->struct_size = sizeof *tensor;
    tensor->dtype = info.dtype;
    tensor->rank = info.rank;
    for (int32_t axis = 0; axis < info.rank; axis++)
        tensor->shape[axis] = axis == 0               ? batch
                              : info.shape[axis] >= 0 ? info.shape[axis]
                                                      : steps;
    tensor->data = tensor_memory(tensor);
    fill_tensor(tensor, vocabulary, random);
}

void rig_request_init(rig_request *request, cellgate_session *session,
                      const cellgate_model *model, int64_t batch, int64_t steps,
                      int32_t vocabulary, uint64_t *random)
{
    cellgate_request *to = &request->request;

    memset(request, 0, sizeof *request);
    to->struct_size = sizeof *to;
    to->inputs = request->inputs;
    to->outputs = request->outputs;
    to->input_count = cellgate_model_input_count(model);
    to->output_count = cellgate_model_output_count(model);
    assert_true(to->input_count <= RIG_MOST && to->output_count <= RIG_MOST);
    for (size_t at = 0; at < to->input_count; at++)
        input_init(&request->inputs[at], model, at, batch, steps, vocabulary,
                   random);
    for (size_t at = 0; at < to->output_count; at++) {
        cellgate_error error = CELLGATE_ERROR_INIT;

        request->outputs[at].struct_size = sizeof request->outputs[at];
        if (cellgate_output_shape(session, to, at, &request->outputs[at],
                                  &error) != CELLGATE_OK)
            fail_msg("the shape of output %zu: %s", at, error.text);
        request->outputs[at].data = tensor_memory(&request->outputs[at]);
    }
}

void rig_request_finish(rig_request *request)
{
    for (size_t at = 0; at < request->request.input_count; at++) {
        free(request->inputs[at].tensor.data);
        free((void *)(uintptr_t)request->inputs[at].lengths);
        free((void *)(uintptr_t)request->inputs[at].mask);
    }
    for (size_t at = 0; at < request->request.output_count; at++)
        free(request->outputs[at].data);
}

static void fill_lengths(const cellgate_input *input, int32_t *lengths,
                         uint64_t *random)
{
    for (int64_t b = 0; b < input->tensor.shape[0]; b++)
        lengths[b] = rig_between(random, 0, (int32_t)input->tensor.shape[1]);
}

void rig_request_lengths(rig_request *request, size_t input, uint64_t *random)
{
    cellgate_input *to = &request->inputs[input];
    int32_t *lengths = calloc((size_t)to->tensor.shape[0], sizeof *lengths);

    assert_non_null(lengths);
    fill_lengths(to, lengths, random);
    to->lengths = lengths;
}

static void fill_mask(const cellgate_input *input, uint8_t *mask,
                      uint64_t *random)
{
    const int64_t batch = input->tensor.shape[0];
    const int64_t steps = input->tensor.shape[1];

    for (int64_t b = 0; b < batch; b++) {
        bool none = rig_between(random, 0, 7) == 0;

        for (int64_t t = 0; t < steps; t++)
            mask[b * steps + t] = !none && rig_between(random, 0, 2) > 0;
    }
}

void rig_request_mask(rig_request *request, size_t input, uint64_t *random)
{
    cellgate_input *to = &request->inputs[input];
    uint8_t *mask =
        calloc((size_t)(to->tensor.shape[0] * to->tensor.shape[1]) + 1, 1);

    assert_non_null(mask);
    fill_mask(to, mask, random);
    to->mask = mask;
}

void rig_request_refill(rig_request *request, int32_t vocabulary,
                        uint64_t *random)
{
    for (size_t at = 0; at < request->request.input_count; at++) {
        const cellgate_input *input = &request->inputs[at];

        fill_tensor(&input->tensor, vocabulary, random);
        if (input->lengths != NULL)
            fill_lengths(input, (int32_t *)(uintptr_t)input->lengths, random);
        if (input->mask != NULL)
            fill_mask(input, (uint8_t *)(uintptr_t)input->mask, random);
    }
}

void rig_run(cellgate_session *session, rig_request *request,
             cellgate_report *report)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_run(session, &request->request, report, &error) != CELLGATE_OK)
        fail_msg("a run of the rig: %s", error.text);
}

float *rig_outputs(const rig_request *request, size_t *count)
{
    float *copy;

    *count = 0;
    for (size_t at = 0; at < request->request.output_count; at++)
        *count += (size_t)tensor_elements(&request->outputs[at]);
    copy = calloc(*count + 1, sizeof *copy);
    assert_non_null(copy);
    *count = 0;
    for (size_t at = 0; at < request->request.output_count; at++) {
        size_t elements = (size_t)tensor_elements(&request->outputs[at]);

        memcpy(copy + *count, request->outputs[at].data,
               elements * sizeof *copy);
        *count += elements;
    }
    return copy;
}

/* Parts near one that cancel leave a rounding of theirs behind, however small
   the sum is. */
static double allowed(double tolerance, double largest)
{
    return fmax(tolerance * largest, (double)FLT_EPSILON / 2);
}

void rig_expect(const rig_request *request, const float *wanted,
                double tolerance)
{
    for (size_t at = 0; at < request->request.output_count; at++) {
        const cellgate_tensor *output = &request->outputs[at];
        const float *got = output->data;
        int64_t count = tensor_elements(output);
        double largest = 0;

        for (int64_t k = 0; k < count; k++)
            if (fabs((double)wanted[k]) > largest)
                largest = fabs((double)wanted[k]);
        for (int64_t k = 0; k < count; k++)
            if (isnan(wanted[k]) ? !isnan(got[k])
                                 : !(fabs((double)got[k] - (double)wanted[k]) <=
                                     allowed(tolerance, largest)))
                fail_msg("output %zu, number %lld is %.9g, not %.9g", at,
                         (long long)k, (double)got[k], (double)wanted[k]);
        wanted += count;
    }
}

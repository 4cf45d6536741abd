/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>

#include "bench/clblast_side.h"

#define DEVICES_MAX 64

static const char source[] =
    "float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }\n"
    "kernel void cell(global const float *gates, global const float *bias,\n"
    "                 global float *h, global float *c, global float *y,\n"
    "                 int H, int stride, int at, int step)\n"
    "{\n"
    "    const int u = get_global_id(0), b = get_global_id(1);\n"
    "    const int batch = get_global_size(1);\n"
    "    global const float *g = gates + ((long)step * batch + b) * 4 * H;\n"
    "    const float i = sigmoid(g[u] + bias[u]);\n"
    "    const float f = sigmoid(g[H + u] + bias[H + u]);\n"
    "    const float n = tanh(g[2 * H + u] + bias[2 * H + u]);\n"
    "    const float o = sigmoid(g[3 * H + u] + bias[3 * H + u]);\n"
    "    const float cell = f * c[b * H + u] + i * n;\n"
    "    const float out = o * tanh(cell);\n"
    "    c[b * H + u] = cell;\n"
    "    h[b * H + u] = out;\n"
    "    y[((long)step * batch + b) * stride + at + u] = out;\n"
    "}\n"
    "kernel void add(global float *y, global const float *bias, int units)\n"
    "{\n"
    "    y[get_global_id(1) * units + get_global_id(0)] +=\n"
    "        bias[get_global_id(0)];\n"
    "}\n";

struct layer {
    int64_t input, hidden;
    int directions;
    cl_mem kernel[2], recurrent[2], bias[2];
};

struct peer {
    const struct bench_data *data;
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_program program;
    cl_kernel cell, add;
    struct layer layers[CASE_MAX_OPS];
    cl_mem x, between[2], gates, h, c, dense, dense_bias, result;
    float *y;
    const char *failed;
    int code;
};

static bool ok(struct peer *peer, int code, const char *call)
{
    if (code != CL_SUCCESS && !peer->failed) {
        peer->failed = call;
        peer->code = code;
    }
    return !peer->failed;
}
#define TRY(peer, call) ok(peer, call, #call)

/* ---- Making ------------------------------------------------------------ */

static cl_mem buffer(struct peer *peer, const float *from, int64_t count)
{
    cl_int code;
    cl_mem made = clCreateBuffer(
        peer->context, CL_MEM_READ_WRITE | (from ? CL_MEM_COPY_HOST_PTR : 0),
        (size_t)count * sizeof(float), (void *)(uintptr_t)from, &code);

    (void)ok(peer, code, "clCreateBuffer");
    return made;
}

static bool find_device(struct peer *peer, uint32_t index)
{
    cl_platform_id platforms[DEVICES_MAX];
    cl_device_id devices[DEVICES_MAX];
    cl_uint platform_count = 0, count = 0, i;

    if (clGetPlatformIDs(DEVICES_MAX, platforms, &platform_count) != CL_SUCCESS)
        return false;
    for (i = 0; i < platform_count; i++, index -= count) {
        count = 0;
        (void)clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, DEVICES_MAX,
                             devices, &count);
        if (index < count) {
            peer->device = devices[index];
            return true;
        }
    }
    return false;
}

static bool make_kernels(struct peer *peer)
{
    const char *text = source;
    cl_int code;

    peer->context = clCreateContext(NULL, 1, &peer->device, NULL, NULL, &code);
    if (!ok(peer, code, "clCreateContext"))
        return false;
    peer->queue = clCreateCommandQueue(peer->context, peer->device, 0, &code);
    (void)ok(peer, code, "clCreateCommandQueue");
    peer->program =
        clCreateProgramWithSource(peer->context, 1, &text, NULL, &code);
    if (!ok(peer, code, "clCreateProgramWithSource") ||
        !TRY(peer,
             clBuildProgram(peer->program, 1, &peer->device, "", NULL, NULL)))
        return false;
    peer->cell = clCreateKernel(peer->program, "cell", &code);
    (void)ok(peer, code, "clCreateKernel");
    peer->add = clCreateKernel(peer->program, "add", &code);
    return ok(peer, code, "clCreateKernel");
}

static void make_buffers(struct peer *peer)
{
    const struct bench_row *row = peer->data->row;
    const int64_t rows = row->batch * row->steps, H = row->hidden;
    int i, d;

    for (i = 0; i < row->layers; i++) {
        const cellgate_lstm *lstm = &peer->data->cases.ops[i].lstm;
        struct layer *layer = &peer->layers[i];

        *layer = (struct layer){ .input = lstm->input_size,
                                 .hidden = H,
                                 .directions = lstm->directions };
        for (d = 0; d < lstm->directions; d++) {
            layer->kernel[d] =
                buffer(peer, lstm->weights[d].kernel, layer->input * 4 * H);
            layer->recurrent[d] =
                buffer(peer, lstm->weights[d].recurrent_kernel, H * 4 * H);
            layer->bias[d] = buffer(peer, lstm->weights[d].bias, 4 * H);
        }
    }
    peer->x = buffer(peer, NULL, rows * row->input);
    for (i = 0; i < 2; i++)
        peer->between[i] = buffer(peer, NULL, rows * row->directions * H);
    peer->gates = buffer(peer, NULL, rows * 4 * H);
    peer->h = buffer(peer, NULL, row->batch * H);
    peer->c = buffer(peer, NULL, row->batch * H);
    if (row->dense) {
        const cellgate_dense *dense = &peer->data->cases.ops[row->layers].dense;

        peer->dense = buffer(peer, dense->kernel, H * row->dense);
        peer->dense_bias = buffer(peer, dense->bias, row->dense);
        peer->result = buffer(peer, NULL, row->batch * row->dense);
    }
}

/* ---- Running ----------------------------------------------------------- */

/* c = a * b + beta c, rows by depth by columns, from these offsets. */
static void multiply(struct peer *peer, int64_t rows, int64_t columns,
                     int64_t depth, cl_mem a, int64_t a_at, cl_mem b, cl_mem c,
                     int64_t c_at, float beta)
{
    (void)TRY(peer,
              CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                           CLBlastTransposeNo, (size_t)rows, (size_t)columns,
                           (size_t)depth, 1.0f, a, (size_t)a_at, (size_t)depth,
                           b, 0, (size_t)columns, beta, c, (size_t)c_at,
                           (size_t)columns, &peer->queue, NULL));
}

static void zero(struct peer *peer, cl_mem memory, int64_t count)
{
    const float nothing = 0;

    (void)TRY(peer, clEnqueueFillBuffer(
                        peer->queue, memory, &nothing, sizeof nothing, 0,
                        (size_t)count * sizeof nothing, 0, NULL, NULL));
}

static void enqueue_cell(struct peer *peer, const struct layer *layer, int d,
                         cl_mem y, int64_t step)
{
    const int H = (int)layer->hidden, stride = layer->directions * H;
    const int at = d * H, number = (int)step;
    const size_t global[2] = { (size_t)H, (size_t)peer->data->row->batch };
    const struct {
        size_t size;
        const void *value;
    } arguments[] = {
        { sizeof(cl_mem), &peer->gates }, { sizeof(cl_mem), &layer->bias[d] },
        { sizeof(cl_mem), &peer->h },     { sizeof(cl_mem), &peer->c },
        { sizeof(cl_mem), &y },           { sizeof H, &H },
        { sizeof stride, &stride },       { sizeof at, &at },
        { sizeof number, &number },
    };
    cl_uint i;

    for (i = 0; i < sizeof arguments / sizeof arguments[0]; i++)
        (void)TRY(peer, clSetKernelArg(peer->cell, i, arguments[i].size,
                                       arguments[i].value));
    (void)TRY(peer, clEnqueueNDRangeKernel(peer->queue, peer->cell, 2, NULL,
                                           global, NULL, 0, NULL, NULL));
}

static void run_layer(struct peer *peer, const struct layer *layer, cl_mem x,
                      cl_mem y)
{
    const int64_t batch = peer->data->row->batch;
    const int64_t steps = peer->data->row->steps, H = layer->hidden;
    int64_t done;
    int d;

    for (d = 0; d < layer->directions; d++) {
        multiply(peer, batch * steps, 4 * H, layer->input, x, 0,
                 layer->kernel[d], peer->gates, 0, 0.0f);
        zero(peer, peer->h, batch * H);
        zero(peer, peer->c, batch * H);
        for (done = 0; done < steps; done++) {
            const int64_t step = d == 1 ? steps - 1 - done : done;

            multiply(peer, batch, 4 * H, H, peer->h, 0, layer->recurrent[d],
                     peer->gates, step * batch * 4 * H, 1.0f);
            enqueue_cell(peer, layer, d, y, step);
        }
    }
}

static void run_dense(struct peer *peer)
{
    const struct bench_row *row = peer->data->row;
    const int units = (int)row->dense;
    const size_t global[2] = { (size_t)units, (size_t)row->batch };

    multiply(peer, row->batch, row->dense, row->hidden, peer->h, 0, peer->dense,
             peer->result, 0, 0.0f);
    (void)TRY(peer,
              clSetKernelArg(peer->add, 0, sizeof(cl_mem), &peer->result));
    (void)TRY(peer,
              clSetKernelArg(peer->add, 1, sizeof(cl_mem), &peer->dense_bias));
    (void)TRY(peer, clSetKernelArg(peer->add, 2, sizeof units, &units));
    (void)TRY(peer, clEnqueueNDRangeKernel(peer->queue, peer->add, 2, NULL,
                                           global, NULL, 0, NULL, NULL));
}

static void run(void *state)
{
    struct peer *peer = state;
    const struct bench_data *data = peer->data;
    const struct bench_row *row = data->row;
    cl_mem x = peer->x, y = NULL;
    int i;

    (void)TRY(peer, clEnqueueWriteBuffer(
                        peer->queue, x, CL_FALSE, 0,
                        (size_t)(row->batch * row->steps * row->input) *
                            sizeof(float),
                        data->x, 0, NULL, NULL));
    for (i = 0; i < row->layers; i++, x = y) {
        y = peer->between[i & 1];
        run_layer(peer, &peer->layers[i], x, y);
    }
    if (row->dense) {
        run_dense(peer);
        y = peer->result;
    }
    (void)TRY(peer, clEnqueueReadBuffer(peer->queue, y, CL_TRUE, 0,
                                        (size_t)data->y_count * sizeof(float),
                                        peer->y, 0, NULL, NULL));
    if (peer->failed) {
        (void)fprintf(stderr, "CLBlast's side: %d from %s\n", peer->code,
                      peer->failed);
        exit(EXIT_FAILURE);
    }
}

/* ---- The side ---------------------------------------------------------- */

static void destroy(void *state)
{
    struct peer *peer = state;
    cl_mem memories[] = { peer->x,     peer->between[0], peer->between[1],
                          peer->gates, peer->h,          peer->c,
                          peer->dense, peer->dense_bias, peer->result };
    size_t i;
    int d;

    for (i = 0; i < sizeof memories / sizeof memories[0]; i++)
        if (memories[i])
            (void)clReleaseMemObject(memories[i]);
    for (i = 0; i < CASE_MAX_OPS; i++)
        for (d = 0; d < peer->layers[i].directions; d++) {
            (void)clReleaseMemObject(peer->layers[i].kernel[d]);
            (void)clReleaseMemObject(peer->layers[i].recurrent[d]);
            (void)clReleaseMemObject(peer->layers[i].bias[d]);
        }
    if (peer->cell)
        (void)clReleaseKernel(peer->cell);
    if (peer->add)
        (void)clReleaseKernel(peer->add);
    if (peer->program)
        (void)clReleaseProgram(peer->program);
    if (peer->queue)
        (void)clReleaseCommandQueue(peer->queue);
    /* The context stays: CLBlast keeps programs by it. */
    free(peer->y);
    free(peer);
}

int bench_clblast(struct bench_side *side, const struct bench_data *data,
                  uint32_t index, char *why, size_t size)
{
    struct peer *peer;

    if (data->row->ragged || data->row->hard_gates || data->row->on_each_step) {
        (void)snprintf(why, size, "the CLBlast loop does not have this row");
        return -1;
    }
    peer = calloc(1, sizeof *peer);
    if (!peer)
        return -1;
    peer->data = data;
    peer->y = calloc((size_t)data->y_count, sizeof *peer->y);
    if (!find_device(peer, index))
        (void)ok(peer, CL_DEVICE_NOT_FOUND, "clGetDeviceIDs");
    else if (peer->y && make_kernels(peer))
        make_buffers(peer);
    if (!peer->y || peer->failed) {
        (void)snprintf(why, size, "CLBlast's side: %d from %.100s", peer->code,
                       peer->failed ? peer->failed : "calloc");
        destroy(peer);
        return -1;
    }
    *side = (struct bench_side){
        peer, run, destroy, peer->y, "CLBlast loop", false, CELLGATE_NUMERIC_F32
    };
    return 0;
}

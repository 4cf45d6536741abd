/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate/cellgate.h: the application interface of libcellgate.
 *
 *   cellgate_runtime   the configuration, the plugins, the devices
 *   cellgate_model     a trained model read from a file; immutable
 *   cellgate_session   a model placed on devices, ready to run
 *   cellgate_stream    recurrent state carried from one request to the next
 *   cellgate_explanation  what a request would be given to, and why
 *   cellgate_generator a decoder that feeds itself, ready to generate
 *   cellgate_arrays    named arrays read from a .npy or .npz file
 *
 * The usual order: cellgate_runtime_create(), cellgate_model_load(),
 * cellgate_session_create(), cellgate_run() as often as wanted, and the
 * matching destroy functions: a session keeps what it needs of the runtime and
 * the model; streams and tickets end before their session.
 *
 * THREADS. A runtime, a model and a session may be used by any number of
 * threads at once, and so may a generator; a stream and an array set by one at
 * a time. Destroy functions must not race with other uses of the same object.
 * After fork() the child gets CELLGATE_FORKED from every function that would
 * touch a device; it may exec, or use models, arrays and everything else.
 *
 * ERRORS. A function that returns a cellgate_status sets its outputs only on
 * CELLGATE_OK; otherwise *error, unless NULL, says what went wrong, naming the
 * file, line, key, layer or device. cellgate_error is in types.h. Destroy
 * functions take NULL.
 *
 * GROWTH. Structs with struct_size may get more members at their end: set
 * struct_size = sizeof(struct) and the rest to zero, which is the default. A
 * program that was built with an older header goes on working; one that sets
 * members that this library does not know gets INVALID.
 */
#ifndef CELLGATE_CELLGATE_H
#define CELLGATE_CELLGATE_H

#include "cellgate/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CELLGATE_API __attribute__((visibility("default")))
#else
#define CELLGATE_API
#endif

typedef struct cellgate_runtime cellgate_runtime;
typedef struct cellgate_model cellgate_model;
typedef struct cellgate_session cellgate_session;
typedef struct cellgate_stream cellgate_stream;
typedef struct cellgate_generator cellgate_generator;
typedef struct cellgate_generation cellgate_generation;
typedef struct cellgate_arrays cellgate_arrays;

/* ---- Names ------------------------------------------------------------- */

/* "0.1.0". */
CELLGATE_API const char *cellgate_version(void);
/* A sentence for people, such as "malformed file". Never NULL. */
CELLGATE_API const char *cellgate_status_text(cellgate_status status);
/* The enum's name without prefix, such as "BAD_FILE". Never NULL. */
CELLGATE_API const char *cellgate_status_name(cellgate_status status);
/* "float32"; NULL for a number that is none. */
CELLGATE_API const char *cellgate_dtype_name(int32_t dtype);
/* "f32"; NULL for a number that is none. */
CELLGATE_API const char *cellgate_numeric_name(int32_t numeric);
/* Bytes an element; 0 for a number that is none. */
CELLGATE_API size_t cellgate_dtype_size(int32_t dtype);

/* ---- Runtime ----------------------------------------------------------- */

typedef struct cellgate_runtime_options {
    size_t struct_size;
    /*
     * Configuration file. NULL: $CELLGATE_CONFIG, then
     * $XDG_CONFIG_HOME/cellgate/cellgate.ini (~/.config without the variable),
     * then SYSCONFDIR/cellgate/cellgate.ini, then the built-in default, in
     * which every plugin found offers all its devices. In a setuid or setgid
     * program the environment is ignored and a file named here is INVALID:
     * an error in it would show lines that the user may not read.
     */
    const char *config_path;
    /*
     * Colon-separated folders to look for plugins in, before those of the
     * configuration and in place of $CELLGATE_PLUGIN_PATH. NULL: none.
     * Ignored in a setuid or setgid program.
     */
    const char *plugin_path;
    /*
     * Receives log lines (a cellgate_log_level and one line), from any thread,
     * and calls nothing of this library, whose locks may be held.
     * NULL: errors and warnings go to stderr, more if [cellgate] log says so.
     */
    void (*log)(void *context, int32_t level, const char *text);
    void *log_context;
} cellgate_runtime_options;

/*
 * Reads the configuration and finds the plugins. No device is opened yet.
 * `options` may be NULL. BAD_CONFIG: error->text begins with file:line.
 * BAD_PLUGIN: a plugin that the configuration says must be there is not
 * usable. The caller destroys the runtime.
 */
CELLGATE_API cellgate_status
cellgate_runtime_create(const cellgate_runtime_options *options,
                        cellgate_runtime **runtime, cellgate_error *error);
/* Sessions made from it stay usable. */
CELLGATE_API void cellgate_runtime_destroy(cellgate_runtime *runtime);

/* The configuration file in use; "" for the built-in default. */
CELLGATE_API const char *
cellgate_runtime_config_path(const cellgate_runtime *runtime);

/* A folder that was searched for plugins. Strings live as the runtime does. */
typedef struct cellgate_path_info {
    size_t struct_size;
    const char *path;
    const char *origin; /* who named it: "built-in", "environment", ... */
    const char *problem; /* NULL, or why nothing can be read there */
    uint32_t plugin_count;
} cellgate_path_info;

/* The verdict on one plugin file. */
typedef struct cellgate_plugin_info {
    size_t struct_size;
    const char *path;
    const char *name;    /* "" if the file never said */
    const char *version; /* likewise */
    int32_t status;      /* CELLGATE_OK: admitted */
    int32_t cached;      /* non-zero: the verdict came from the cache */
    const char *reason;  /* "" when admitted with devices; else why, and what
                            to install or set */
    uint32_t device_count;
} cellgate_plugin_info;

/* A device of the configuration. */
typedef struct cellgate_device_info {
    size_t struct_size;
    const char *name; /* [device NAME], or PLUGIN:INDEX without a section */
    const char *plugin;
    int32_t status; /* CELLGATE_OK: usable as far as known */
    const char *reason; /* "" when usable; else why not, and the remedy */
    /* Empty strings and zeros for a device whose plugin is not there: */
    const char *description; /* the hardware's name */
    const char *vendor;
    const char *driver;
    const char *resource;
    const char *identity;
    int32_t kind; /* a cellgate_device_kind */
    uint64_t memory;
    uint32_t queue_depth;
    /* Of one that is not usable: for how long (0: it never was), and until it
       is tried again (negative: it will not be). */
    double out_seconds;
    double retry_seconds;
} cellgate_device_info;

/*
 * Counts and entries, in search order (paths, plugins) and in configuration
 * order (devices). `info->struct_size` must be set. END past the last one.
 */
CELLGATE_API size_t cellgate_path_count(const cellgate_runtime *runtime);
CELLGATE_API cellgate_status cellgate_path_get(const cellgate_runtime *runtime,
                                               size_t index,
                                               cellgate_path_info *info);
CELLGATE_API size_t cellgate_plugin_count(const cellgate_runtime *runtime);
CELLGATE_API cellgate_status
cellgate_plugin_get(const cellgate_runtime *runtime, size_t index,
                    cellgate_plugin_info *info);
CELLGATE_API size_t cellgate_device_count(const cellgate_runtime *runtime);
CELLGATE_API cellgate_status
cellgate_device_get(const cellgate_runtime *runtime, size_t index,
                    cellgate_device_info *info);

/* ---- Model ------------------------------------------------------------- */

/*
 * Reads a trained model: .keras and .h5 files of Keras 1 to 3, or the native
 * safetensors file (the content decides, not the name). For a file of weights
 * alone, X.weights.h5, X.h5 or X.hdf5, the architecture is read from X.json
 * beside it, as model.to_json() writes it; X.json may be given as well, if one
 * of those is there. The caller destroys the model. BAD_FILE, UNSUPPORTED: the
 * text names the file and the layer or option. INVALID: X.json has several
 * files of weights beside it. IO: a file cannot be read.
 *
 * Files may be damaged, or made to do harm: whatever the bytes, the worst is an
 * error. What no reader can help is a file that changes while it is in use: a
 * native file on a local disk is mapped, for as long as the model lives, and one
 * that is cut meanwhile ends the process with SIGBUS. Replace it by renaming a
 * new file over it, as cellgate_model_save() does, and not by writing into it:
 * whoever uses the old one keeps it.
 */
CELLGATE_API cellgate_status cellgate_model_load(const char *path,
                                                 cellgate_model **model,
                                                 cellgate_error *error);
/* Writes the native file, atomically: `path` is whole or untouched. */
CELLGATE_API cellgate_status cellgate_model_save(const cellgate_model *model,
                                                 const char *path,
                                                 cellgate_error *error);
CELLGATE_API void cellgate_model_destroy(cellgate_model *model);

/* Layers of LSTMs, each over the sequence of the one before. */
typedef struct cellgate_lstm_stack {
    size_t struct_size;
    int64_t input_size;  /* features of the model's input, 1 to 65536 */
    int64_t hidden_size; /* of each layer, 1 to 65536 */
    int32_t layers;      /* 1 to 64 */
    int32_t bidirectional; /* non-zero: two directions, side by side */
} cellgate_lstm_stack;

/*
 * Makes such a model with made-up weights, to be timed: sigmoid and tanh, a
 * bias; any number of steps; the last layer's sequence comes out. The caller
 * destroys it.
 */
CELLGATE_API cellgate_status
cellgate_model_make_lstm(const cellgate_lstm_stack *stack,
                         cellgate_model **model, cellgate_error *error);

/* An input or output of a model. Strings live as the model does. */
typedef struct cellgate_value_info {
    size_t struct_size;
    const char *name;
    int32_t dtype;
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK]; /* -1: decided by the request; shape[0]
                                         is the batch */
    /*
     * Non-zero: where the model was trained, this array has its first two axes
     * the other way round, (steps, batch, ...), for layers of
     * time_major=True. Requests have rows first, as `shape` says, of every
     * model: turn such arrays first, and the results back.
     */
    int32_t steps_first;
    /* Of an input, non-zero: a layer would look at a mask or lengths given with
       it. Others are refused with one. */
    int32_t takes_mask;
} cellgate_value_info;

/* A node of the graph, in an order in which it can be computed. */
typedef struct cellgate_node_info {
    size_t struct_size;
    const char *name;  /* the layer's name in the file it came from */
    const char *kind;  /* "lstm", "dense", ... */
    const char *detail; /* options worth knowing, for people: "tanh, sigmoid" */
    int64_t parameters; /* trained numbers */
    int64_t operations; /* multiplications and additions a batch row and step,
                           or a row for a node that sees no steps */
    int32_t rank;       /* of the first output */
    int64_t shape[CELLGATE_MAX_RANK]; /* of the first output; -1 as above */
} cellgate_node_info;

/* "keras" or "native"; the version the file states, or "". */
CELLGATE_API const char *cellgate_model_format(const cellgate_model *model);
CELLGATE_API const char *
cellgate_model_format_version(const cellgate_model *model);
/* What a person should know about how the model was read, such as that it was
   trained with a policy of lower precision; "" for nothing. */
CELLGATE_API const char *cellgate_model_note(const cellgate_model *model);
/* 32 hex digits over structure and weights, equal for equal models. */
CELLGATE_API const char *
cellgate_model_fingerprint(const cellgate_model *model);
CELLGATE_API size_t cellgate_model_input_count(const cellgate_model *model);
CELLGATE_API size_t cellgate_model_output_count(const cellgate_model *model);
CELLGATE_API size_t cellgate_model_node_count(const cellgate_model *model);
/* `info->struct_size` must be set. END past the last one. */
CELLGATE_API cellgate_status
cellgate_model_input_get(const cellgate_model *model, size_t index,
                         cellgate_value_info *info);
CELLGATE_API cellgate_status
cellgate_model_output_get(const cellgate_model *model, size_t index,
                          cellgate_value_info *info);
CELLGATE_API cellgate_status
cellgate_model_node_get(const cellgate_model *model, size_t index,
                        cellgate_node_info *info);

/* ---- Session ----------------------------------------------------------- */

typedef struct cellgate_session_options {
    size_t struct_size;
    /*
     * Device that must run the model, by its name in the configuration. NULL:
     * the first usable one in configuration order. "host": the plain host ops
     * and no device at all (slow; a reference).
     */
    const char *device;
    /* Variant by name, for tests and measurements. NULL: the core chooses. */
    const char *variant;
    /*
     * How many requests the session is expected to serve: what is done once,
     * opening a device and laying out weights, is weighed as the share of one,
     * as far as it was measured. 0: as [scheduler] requests says, by default
     * many, so that it does not count.
     */
    double expected_requests;
} cellgate_session_options;

/*
 * Places a model on devices, opens them and prepares the weights: the slow
 * part. An op that the device refuses runs on the host, which
 * cellgate_session_segment_get() and every report say. The session keeps the
 * runtime's devices and the model alive. The caller destroys it.
 * NO_DEVICE: no device is usable; the text lists why. NOT_FOUND: no device or
 * variant of that name. A named device that cannot be used is an error.
 */
CELLGATE_API cellgate_status
cellgate_session_create(cellgate_runtime *runtime, const cellgate_model *model,
                        const cellgate_session_options *options,
                        cellgate_session **session, cellgate_error *error);
CELLGATE_API void cellgate_session_destroy(cellgate_session *session);

/* A part of the model that one device runs. Strings live as the session. */
typedef struct cellgate_segment_info {
    size_t struct_size;
    const char *device;  /* "host" for the host ops */
    const char *variant; /* "" for the host ops */
    const char *nodes;   /* names of the nodes, separated by ", " */
    const char *reason;  /* why here; for host ops, what the device refused */
    uint32_t threads;
    int32_t numeric; /* a cellgate_numeric */
    const char *note; /* "", or which setting of the model keeps the device
                         from its fastest way, as it says */
} cellgate_segment_info;

CELLGATE_API size_t
cellgate_session_segment_count(const cellgate_session *session);
CELLGATE_API cellgate_status
cellgate_session_segment_get(const cellgate_session *session, size_t index,
                             cellgate_segment_info *info);

/*
 * One input of a request. The tensor is only read. float64, float16 and
 * integer data are converted to what the model takes; an int64 id that does
 * not fit is OUT_OF_RANGE.
 */
typedef struct cellgate_input {
    size_t struct_size;
    cellgate_tensor tensor; /* [batch][steps]..., as the model's input */
    /*
     * Valid steps a row, [batch], each in [0, steps]: the row is padded on the
     * right. Or a mask [batch][steps], non-zero for valid steps, of any
     * pattern. At most one; NULL both: every step is valid. They act as a
     * Keras mask on this input does: recurrent layers skip masked steps.
     */
    const int32_t *lengths;
    const uint8_t *mask;
} cellgate_input;

/* Where a request's time went, and why. Filled by cellgate_run(). */
typedef struct cellgate_report {
    size_t struct_size;
    char device[96];   /* of the device segment that took longest; "host" where
                          none ran on a device */
    char variant[32];
    char reason[160];  /* why this device */
    double seconds;    /* the whole request */
    double device_seconds; /* inside plugins' run() */
    double host_seconds;   /* host ops, masks, conversions */
    double wait_seconds;   /* for threads, a place on the device, a new plan */
    /* From the device itself, zero when it does not say: */
    double upload_seconds;
    double compute_seconds;
    double download_seconds;
    uint32_t segments;      /* run by plugins */
    uint32_t host_segments; /* run by the host ops */
    int32_t numeric;        /* the least exact cellgate_numeric that ran */
} cellgate_report;

/* One request. The application owns everything that it points to. */
typedef struct cellgate_request {
    size_t struct_size;
    const cellgate_input *inputs; /* one for each model input, in order */
    size_t input_count;
    /*
     * One for each model output, in order: float32, with the shape that
     * cellgate_output_shape() gives and memory to write to. An output whose
     * data is NULL is not wanted. It may lie over an input. After an error its
     * contents are undefined.
     */
    cellgate_tensor *outputs;
    size_t output_count;
    /* NULL: every recurrent layer starts from zeros, also one that its file
       calls stateful. Initial states that the model's graph gives win. */
    cellgate_stream *stream;
} cellgate_request;

/* Shape and dtype of output `index` for a request's inputs; data untouched. */
CELLGATE_API cellgate_status
cellgate_output_shape(const cellgate_session *session,
                      const cellgate_request *request, size_t index,
                      cellgate_tensor *output, cellgate_error *error);

/*
 * Computes, and returns when the outputs are written. `report` may be NULL.
 * Allocates nothing once the same shapes have been seen by as many threads.
 * BAD_SHAPE, OUT_OF_RANGE: the text names the input, row and step.
 * DEVICE_LOST, TIMEOUT: the device is out of service, until it was opened anew
 * and checked ([scheduler] readmit), and so it is after too many DEVICE_FAILED;
 * the request may be repeated, now in a session on another device, or later. A
 * stream is unchanged after an error.
 */
CELLGATE_API cellgate_status cellgate_run(cellgate_session *session,
                                          const cellgate_request *request,
                                          cellgate_report *report,
                                          cellgate_error *error);

/* ---- Self-test --------------------------------------------------------- */

/*
 * A small ragged request (3 rows, few steps; masks, where the model takes
 * them) with the answers of the host reference, whose sums are in double. It
 * tells whether a device, a driver or a build computes what the machine on
 * which the model was converted computed. Native files carry one; a model read
 * from another format has none until one is made.
 */

/* How many rows the model's self-test has; 0: it has none. */
CELLGATE_API int64_t cellgate_model_selftest_rows(const cellgate_model *model);
/*
 * Makes one, unless the model has one, on the host ops: before the model is
 * shared with a session or another thread. cellgate_model_save() writes it with
 * the model: 16 MiB at most, and 256 MiB of memory while it is made.
 * UNSUPPORTED: it would take more, or the reference has no finite answer to any
 * small request, and the text says why; the model is as usable as before.
 */
CELLGATE_API cellgate_status cellgate_model_make_selftest(cellgate_model *model,
                                                          cellgate_error *error);

typedef struct cellgate_selftest_result {
    size_t struct_size;
    int32_t agrees;        /* non-zero: difference <= tolerance */
    double difference;     /* the largest |output - answer| over the largest
                              |answer| of that output; the worst output's.
                              Infinity where only one of them is a number */
    double tolerance;      /* by the numeric class of the variants that ran:
                              1e-5 f32, 1e-2 tf32 and f16, 5e-2 bf16,
                              0.1 int8. Sums in another order change results by
                              1e-7 to 1e-6; a wrong formula by 1e-3 and more */
    cellgate_report report; /* of the run: device, variant, times */
} cellgate_selftest_result;

/*
 * Runs the model's self-test on the session. OK says that it ran; whether the
 * answers agree is in *result, whose struct_size must be set. NOT_FOUND: the
 * model has no self-test.
 */
CELLGATE_API cellgate_status
cellgate_session_selftest(cellgate_session *session,
                          cellgate_selftest_result *result,
                          cellgate_error *error);

/* A variant that the session's device offers for the model. */
typedef struct cellgate_variant_info {
    size_t struct_size;
    char name[32];
    uint32_t threads; /* that it keeps busy */
    int32_t numeric;  /* a cellgate_numeric */
    int32_t usable;   /* zero: it needs more threads than there are, or the
                         note says why not */
    char note[160];   /* as in a cellgate_segment_info */
} cellgate_variant_info;

/* The variants of all segments, each name once. END past the last one. */
CELLGATE_API cellgate_status
cellgate_session_variant_get(const cellgate_session *session, size_t index,
                             cellgate_variant_info *info);

/* ---- Queued requests ----------------------------------------------------- */

/*
 * A request that was submitted. Requests of a session are begun in the order in
 * which they come, as many at once as its devices are worth; those of one
 * stream one after the other, in their order. [scheduler] queue says how many
 * may wait.
 */
typedef struct cellgate_ticket cellgate_ticket;

typedef struct cellgate_submission {
    size_t struct_size;
    double deadline; /* seconds from now by which it has to begin, at least 0;
                        0: none */
} cellgate_submission;

/*
 * Queues a request, whose struct is copied; all that it points to, with the
 * arrays of inputs and outputs, stays the application's, untouched by it until
 * the request has ended. `options` may be NULL. The caller ends the ticket with
 * cellgate_ticket_destroy(), before the session. BUSY: as many wait as may.
 */
CELLGATE_API cellgate_status cellgate_submit(
    cellgate_session *session, const cellgate_request *request,
    const cellgate_submission *options, cellgate_ticket **ticket,
    cellgate_error *error);
/*
 * Waits until the request has ended, at most `seconds` (negative: for good),
 * and returns what cellgate_run() would have. PENDING: it has not ended yet.
 * CANCELLED: by cellgate_cancel(). EXPIRED: it did not begin by its deadline.
 * Any number of calls.
 */
CELLGATE_API cellgate_status cellgate_wait(cellgate_ticket *ticket,
                                           double seconds,
                                           cellgate_report *report,
                                           cellgate_error *error);
/* Takes back a request that has not begun. OK: it will not run. BUSY: it runs,
   and goes on. END: it has ended. */
CELLGATE_API cellgate_status cellgate_cancel(cellgate_ticket *ticket);
/* Waits for a request that runs; cancels one that does not. NULL is allowed. */
CELLGATE_API void cellgate_ticket_destroy(cellgate_ticket *ticket);

/* ---- Stream ------------------------------------------------------------ */

/*
 * State of every recurrent node of the model (LSTM, GRU, SimpleRNN) for
 * `batch` rows, zero at first. A request that names it starts from it and
 * leaves its final state in it. The session must outlive it. The caller
 * destroys it.
 */
CELLGATE_API cellgate_status cellgate_stream_create(cellgate_session *session,
                                                    int64_t batch,
                                                    cellgate_stream **stream,
                                                    cellgate_error *error);
CELLGATE_API void cellgate_stream_destroy(cellgate_stream *stream);
/* All zeros again. */
CELLGATE_API cellgate_status cellgate_stream_reset(cellgate_stream *stream,
                                                   cellgate_error *error);

/*
 * The canonical layout of a stream's state: for each recurrent node of the
 * model, in node order, h [directions][batch][output size] and then, for an
 * LSTM alone, c [directions][batch][hidden size], float32. States are numbered
 * through: in a model of LSTMs, number 2k is h of LSTM k and 2k+1 its c.
 * cellgate_stream_state_get() says of any number whose state it is.
 */
CELLGATE_API size_t cellgate_stream_state_count(const cellgate_stream *stream);
/* Fills rank, shape and dtype; data untouched. END past the last one. */
CELLGATE_API cellgate_status
cellgate_stream_state_shape(const cellgate_stream *stream, size_t index,
                            cellgate_tensor *state);
/* Whose a state is. Strings live as the model does. */
typedef struct cellgate_state_info {
    size_t struct_size;
    size_t node;       /* as cellgate_model_node_get() counts */
    const char *name;  /* of that node */
    const char *state; /* "h" or "c" */
} cellgate_state_info;

/* `info->struct_size` must be set. END past the last one. */
CELLGATE_API cellgate_status
cellgate_stream_state_get(const cellgate_stream *stream, size_t index,
                          cellgate_state_info *info);
/* Copies one state into, or from, a tensor of exactly that shape. */
CELLGATE_API cellgate_status
cellgate_stream_export(cellgate_stream *stream, size_t index,
                       const cellgate_tensor *state, cellgate_error *error);
CELLGATE_API cellgate_status
cellgate_stream_import(cellgate_stream *stream, size_t index,
                       const cellgate_tensor *state, cellgate_error *error);

/* ---- Arrays ------------------------------------------------------------ */

/*
 * Reads a .npy (one array, named "") or a .npz file. Header versions 1 to 3,
 * little or big endian, either order (Fortran order is turned), float16, 32
 * and 64, bool, integers of 8 to 64 bits. Those without a dtype here become
 * one that holds them: int8, int16, uint16 are int32; uint32, uint64 are int64.
 * A packed archive may unpack to 100 times its size or 64 MiB, whichever is
 * more; beyond, save it unpacked. The caller destroys the set. BAD_FILE,
 * UNSUPPORTED, OUT_OF_RANGE (a uint64 that int64 does not hold): the text names
 * the file and the array. IO: it cannot be read.
 */
CELLGATE_API cellgate_status cellgate_arrays_read(const char *path,
                                                  cellgate_arrays **arrays,
                                                  cellgate_error *error);
CELLGATE_API void cellgate_arrays_destroy(cellgate_arrays *arrays);
CELLGATE_API size_t cellgate_arrays_count(const cellgate_arrays *arrays);
/*
 * The tensor's data stays the set's; it is 64-byte aligned and never NULL.
 * `tensor->struct_size` must be set; `name` or `tensor` may be NULL. END past
 * the last one.
 */
CELLGATE_API cellgate_status cellgate_arrays_get(const cellgate_arrays *arrays,
                                                 size_t index,
                                                 const char **name,
                                                 cellgate_tensor *tensor);
/*
 * Writes tensors atomically: one array as .npy, or one and more as .npz
 * (stored, not deflated), by the ending of `path`. A file that is replaced
 * keeps its permissions. `names` is ignored for .npy and may be NULL there.
 * UNSUPPORTED: bfloat16, which .npy has not.
 */
CELLGATE_API cellgate_status
cellgate_arrays_write(const char *path, const char *const *names,
                      const cellgate_tensor *tensors, size_t count,
                      cellgate_error *error);

/* ---- Arrays in pieces -------------------------------------------------- */

/*
 * A .npy file larger than memory, read from its first row to its last. The
 * header and the file's size are checked at the start. UNSUPPORTED: a .npz, or
 * an array in Fortran order, whose rows do not lie together. The caller closes
 * the reader.
 */
typedef struct cellgate_array_reader cellgate_array_reader;

CELLGATE_API cellgate_status
cellgate_array_reader_open(const char *path, cellgate_array_reader **reader,
                           cellgate_error *error);
CELLGATE_API void cellgate_array_reader_close(cellgate_array_reader *reader);
/* dtype, rank and shape of the whole array; its data is NULL. */
CELLGATE_API cellgate_status
cellgate_array_reader_shape(const cellgate_array_reader *reader,
                            cellgate_tensor *whole);
/*
 * The next `rows` rows, or those that are left; END when none are.
 * piece->struct_size must be set; its data stay the reader's, valid until the
 * next call, 64-byte aligned.
 */
CELLGATE_API cellgate_status
cellgate_array_reader_next(cellgate_array_reader *reader, int64_t rows,
                           cellgate_tensor *piece, cellgate_error *error);

/*
 * A .npy file written from its first row to its last, atomically: it appears
 * under its name at the commit, whole. `whole` gives dtype and final shape; its
 * data is not looked at. End a writer with exactly one of commit and abandon.
 */
typedef struct cellgate_array_writer cellgate_array_writer;

CELLGATE_API cellgate_status
cellgate_array_writer_open(const char *path, const cellgate_tensor *whole,
                           cellgate_array_writer **writer,
                           cellgate_error *error);
/* Dense rows of the dtype. INVALID: more than the array has. */
CELLGATE_API cellgate_status
cellgate_array_writer_append(cellgate_array_writer *writer, const void *data,
                             int64_t rows, cellgate_error *error);
/* The writer is gone whatever the answer. INVALID: rows are missing. */
CELLGATE_API cellgate_status cellgate_array_writer_commit(
    cellgate_array_writer *writer, cellgate_error *error);
/* Drops what was written; a file of that name is as it was. */
CELLGATE_API void cellgate_array_writer_abandon(cellgate_array_writer *writer);

/* Writes a whole file as everything here is written: atomically, on the disk
   when it returns, with the permissions of the file that it replaces. */
CELLGATE_API cellgate_status cellgate_file_write(const char *path,
                                                 const void *data, size_t size,
                                                 cellgate_error *error);

#ifdef __cplusplus
}
#endif

#include "cellgate/calibrate.h"
#include "cellgate/generate.h"

#endif /* CELLGATE_CELLGATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate/plugin.h: the ABI between the Cellgate core and a device plugin.
 *
 * A plugin is a shared object that exports one function,
 * cellgate_plugin_entry(), which returns a constant table of operations. It
 * includes this header and types.h, links with its vendor's libraries, and has
 * no undefined symbol of the core: what it needs from the host comes in a
 * table at init(). doc/plugin-guide.md walks through a complete plugin.
 *
 * GROWTH. Every struct that crosses begins with struct_size, set by whoever
 * declares it; a zero field is the default, so a struct may only be appended
 * to. The host reads min(struct_size, its own size) bytes of a plugin's table.
 * A plugin refuses a struct with a non-zero byte beyond the size it knows
 * (cellgate_struct_known() below), so it never silently ignores a request that
 * is newer than it is. Structs marked "never grows" have no struct_size.
 *
 * THREADS. Unless an operation says otherwise, the host may call it from any
 * thread and, for different objects, from several threads at once.
 *
 * ERRORS. An operation returns a cellgate_status; other than OK and END it
 * fills *error (never NULL here) with cellgate_fail(). Outputs are set only on
 * success. An operation never exits, aborts or throws.
 *
 * This is version 0: it may change until it is frozen as version 1.
 */
#ifndef CELLGATE_PLUGIN_H
#define CELLGATE_PLUGIN_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cellgate/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CELLGATE_ABI_VERSION 0u
#define CELLGATE_PLUGIN_MAGIC 0x4C4C4543u /* "CELL" */
#define CELLGATE_PLUGIN_SYMBOL "cellgate_plugin_entry"

#if defined(_WIN32)
#define CELLGATE_PLUGIN_EXPORT __declspec(dllexport)
#else
#define CELLGATE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/*
 * Opaque objects. The plugin defines these structs itself, as it likes; the
 * host only hands the pointers back.
 *
 *   instance   what init() made; one a process
 *   device     an open device
 *   weights    the weights of one segment, laid out for one pack of a device
 *   plan       everything needed to run one variant up to a stated shape
 *   resident   LSTM state that stays on the device between runs (optional)
 */
typedef struct cellgate_instance cellgate_instance;
typedef struct cellgate_device cellgate_device;
typedef struct cellgate_weights cellgate_weights;
typedef struct cellgate_plan cellgate_plan;
typedef struct cellgate_resident cellgate_resident;

/* The settings of one [device NAME] section; read with host->setting(). */
typedef struct cellgate_settings cellgate_settings;

/*
 * Host services, valid from init() until after finish(). Every member that the
 * host's struct_size covers is set; each may be called from any thread. An
 * older host has no member that came later: a copy by cellgate_struct_copy()
 * has NULL there. `context` is passed back unchanged.
 */
typedef struct cellgate_host {
    size_t struct_size;
    void *context;

    /* One line, without newline; `level` is a cellgate_log_level. */
    void (*log)(void *context, int32_t level, const char *text);

    /*
     * `size` bytes at a multiple of `alignment` (a power of two), or NULL.
     * Size 0 gives a pointer that may be released. Contents are undefined.
     */
    void *(*allocate)(void *context, size_t alignment, size_t size);
    void (*release)(void *context, void *memory); /* NULL is allowed */

    /*
     * Value of a key that the plugin declared in its table, in canonical form:
     * boolean "yes" or "no"; integer in decimal; size in bytes; seconds as a
     * decimal number; choice and text as written. The key's default_text when
     * the section lacks it, and for every key when `settings` is NULL. NULL for
     * a key that was not declared. Valid until device_close() of that device.
     */
    const char *(*setting)(void *context, const cellgate_settings *settings,
                           const char *key);

    /*
     * How many threads the host grants on a resource (see resource below):
     * at least 1. A plugin offers no variant with more. Its devices and their
     * descriptions don't depend on it: the host keeps them between processes.
     */
    uint32_t (*thread_budget)(void *context, const char *resource);

    /* Monotonic time in nanoseconds. */
    uint64_t (*clock)(void *context);

    /*
     * Not 0: the section's `exclude` leaves out variants of this name. The host
     * never makes a plan of one; a plugin that runs something while it prepares
     * weights asks first, and one that runs a variant by another.
     */
    int32_t (*excludes)(void *context, const cellgate_settings *settings,
                        const char *variant);
} cellgate_host;

/* Type of a configuration key. */
typedef enum cellgate_key_type {
    CELLGATE_KEY_TEXT = 0,
    CELLGATE_KEY_BOOLEAN = 1, /* yes|no|true|false|on|off|1|0 */
    CELLGATE_KEY_INTEGER = 2, /* decimal, between minimum and maximum */
    CELLGATE_KEY_SIZE = 3,    /* bytes; K M G T (powers of 1024) allowed */
    CELLGATE_KEY_SECONDS = 4, /* number with ns us ms s min h; bare is s */
    CELLGATE_KEY_CHOICE = 5   /* one of `choices` */
} cellgate_key_type;

/*
 * A key that the plugin takes in a [device NAME] section. The host checks
 * values before the plugin sees them. The names plugin, enabled, match, index
 * and exclude belong to the host.
 */
typedef struct cellgate_key {
    size_t struct_size;
    const char *name;         /* lower case, digits, underscore */
    int32_t type;             /* a cellgate_key_type */
    const char *default_text; /* canonical; never NULL */
    const char *choices;      /* "a|b|c" for CHOICE, else NULL */
    int64_t minimum, maximum; /* INTEGER, SIZE; both 0 means no bounds */
    const char *help;         /* one line */
} cellgate_key;

/* Flags of a device. */
enum {
    /*
     * Runs are computed in host memory by the calling thread (and a team of
     * the device's own): the host calls run() on the application's thread with
     * the application's buffers. Without it the host calls run() on a worker
     * thread of its own, over buffers of its own, under a watchdog.
     */
    CELLGATE_DEVICE_ON_CALLER = 1u << 0
};

/* What a device is. The host declares it; device_describe() fills it. */
typedef struct cellgate_device_description {
    size_t struct_size;
    char name[96]; /* for people: "AMD EPYC 9655", "NVIDIA H200" */
    char vendor[64];
    char driver[64]; /* driver or library version */
    /*
     * The physical thing computed on: "cpu" for the host's cores,
     * "pci:DDDD:BB:DD.F" for a card. Two devices with the same text contend.
     */
    char resource[64];
    /*
     * Changes whenever measured costs would no longer hold: device, driver,
     * instruction set, kernel version. Stable from process to process. It
     * leaves out the device's settings: those the host knows itself.
     */
    char identity[192];
    int32_t kind; /* a cellgate_device_kind */
    uint32_t flags;
    uint64_t memory;      /* bytes usable, 0 if unknown */
    uint32_t queue_depth; /* plans worth running at once; 0 means 1 */
} cellgate_device_description;

/* ---- Segments: what is to be computed --------------------------------- */

/*
 * A segment is a chain of ops: each op's result is the next one's input. The
 * result passed on is either a sequence, [batch][steps][features], or one row
 * a sample, [batch][features]. Rows that a chain without an LSTM begins with
 * are sequences of one step; their result goes to y, or where y.data is NULL to
 * y_last. The kinds:
 */
typedef enum cellgate_op_kind {
    CELLGATE_OP_NONE = 0,
    CELLGATE_OP_LSTM = 1,      /* every plugin; the others are optional */
    CELLGATE_OP_DENSE = 2,     /* on each step of a sequence, or on rows */
    CELLGATE_OP_EMBEDDING = 3, /* first op of a segment only */
    CELLGATE_OP_ACTIVATION = 4,
    CELLGATE_OP_SOFTMAX = 5 /* over the features */
} cellgate_op_kind;

/* What every op begins with. */
typedef struct cellgate_op {
    size_t struct_size; /* of the whole op, not of this header */
    int32_t kind;       /* a cellgate_op_kind */
    int32_t reserved;   /* 0 */
} cellgate_op;

/* Outputs wanted from an LSTM, a set of flags. */
enum {
    CELLGATE_LSTM_SEQUENCE = 1u << 0, /* the output at every step */
    CELLGATE_LSTM_LAST = 1u << 1,     /* the output at the last valid step */
    CELLGATE_LSTM_H = 1u << 2,        /* the final hidden state */
    CELLGATE_LSTM_C = 1u << 3         /* the final cell state */
};

/*
 * The weights of one direction, float32, dense, row-major. I input size,
 * H hidden size, R = projection size, or H without projection. The four gates
 * lie in the order i (input), f (forget), c (cell candidate), o (output).
 * Never grows.
 */
typedef struct cellgate_lstm_weights {
    const float *kernel;           /* [I][4H] */
    const float *recurrent_kernel; /* [R][4H] */
    const float *bias;             /* [4H], NULL without bias */
    const float *peephole;         /* [3][H] for i, f, o; NULL without */
    const float *projection;       /* [H][R], NULL without */
} cellgate_lstm_weights;

/*
 * One LSTM layer, of one or two directions.
 *
 * For each direction, with x the input at a step, h and c the state, * the
 * matrix product, . the elementwise product, P the peephole vectors, clip(v)
 * v limited to [-clip, clip] (not applied when clip is 0), and the three
 * activations gate, cell, hidden:
 *
 *   i = gate(clip(x*W_i + h*R_i + b_i + P_i . c))
 *   f = gate(clip(x*W_f + h*R_f + b_f + P_f . c))   coupled: f = 1 - i
 *   g = cell(clip(x*W_c + h*R_c + b_c))
 *   c'= f . c + i . g
 *   o = gate(clip(x*W_o + h*R_o + b_o + P_o . c'))
 *   h'= o . hidden(c')                        projected: h' = (..) * W_proj
 *
 * (Hochreiter & Schmidhuber 1997; Gers et al. 2000 for forget gates and
 * peepholes; the projected form is Sak et al. 2014. ONNX LSTM agrees.)
 *
 * A row of length n does n steps: from step 0 up, or, for a reversed direction,
 * from step n-1 down. Steps from n on leave the state alone and give zeros in
 * the sequence output, which always keeps time order. Direction 0 runs forward
 * unless `reverse` is set; direction 1 is reversed. Outputs of the two
 * directions lie side by side: features [0, R) and [R, 2R).
 *
 * LAST is the output of the last step done in each direction (for a reversed
 * one that is step 0), or zeros for a row of length 0, whose H and C are its
 * initial state.
 *
 * A NaN or infinity in a row of the input reaches that row's results only.
 *
 * In a chain, an LSTM that is not the last op has exactly one of SEQUENCE and
 * LAST set: that is what it passes on. H and C may be asked of any LSTM.
 */
typedef struct cellgate_lstm {
    cellgate_op op;
    int64_t input_size;
    int64_t hidden_size;
    int64_t projection_size; /* 0: no projection */
    int32_t directions;      /* 1 or 2 */
    int32_t reverse;         /* non-zero: direction 0 is reversed; only
                                with directions == 1 */
    uint32_t outputs;        /* CELLGATE_LSTM_ flags, at least one */
    int32_t has_bias;
    int32_t has_peepholes;
    int32_t coupled;  /* coupled input and forget gates */
    float clip;       /* 0: no clipping */
    int32_t reserved; /* 0 */
    /* [direction][0 gate, 1 cell, 2 hidden] */
    cellgate_activation activations[2][3];
    /* [direction]; perhaps NULL in support(), which looks at structure only */
    cellgate_lstm_weights weights[2];
} cellgate_lstm;

/* y = activation(x * kernel + bias), on each step or row. */
typedef struct cellgate_dense {
    cellgate_op op;
    int64_t input_size;
    int64_t units;
    int32_t has_bias;
    cellgate_activation activation; /* LINEAR for none */
    const float *kernel;            /* [input_size][units]; perhaps NULL in
                                       support() */
    const float *bias;              /* [units], NULL without */
} cellgate_dense;

/* y = table[id]. x is int32 ids [batch][steps]; the host has checked them. */
typedef struct cellgate_embedding {
    cellgate_op op;
    int64_t vocabulary;
    int64_t size;
    const float *table; /* [vocabulary][size]; perhaps NULL in support() */
} cellgate_embedding;

/* y = activation(x), elementwise. */
typedef struct cellgate_activation_op {
    cellgate_op op;
    int64_t size; /* features */
    cellgate_activation activation;
} cellgate_activation_op;

/* y = e^(x - max x) / sum e^(x - max x), over the features. */
typedef struct cellgate_softmax {
    cellgate_op op;
    int64_t size; /* features */
} cellgate_softmax;

/*
 * The chain. The host owns it. For support() it lives during the call; for
 * prepare() it and the weights it points to stay valid and unchanged until
 * weights_free().
 */
typedef struct cellgate_segment {
    size_t struct_size;
    uint32_t op_count; /* at least 1 */
    uint32_t reserved; /* 0 */
    const cellgate_op *const *ops;
} cellgate_segment;

/* The shape that a cost and a plan depend on. */
typedef struct cellgate_shape {
    size_t struct_size;
    int64_t batch; /* at least 1 */
    int64_t steps; /* at least 0 */
} cellgate_shape;

/*
 * One way in which a device can run a segment. The host declares it and
 * support() fills it.
 */
typedef struct cellgate_variant {
    size_t struct_size;
    char name[32];       /* for people and records, stable: "t1", "persist" */
    uint64_t id;         /* the plugin's own; handed to plan_create() */
    uint32_t pack;       /* weights prepared for one pack serve all variants
                            with the same number */
    int32_t numeric;     /* a cellgate_numeric */
    uint32_t threads;    /* host threads kept busy, at least 1 */
    int32_t exact_batch; /* non-zero: a plan runs only its own batch */
    int32_t exact_steps; /* non-zero: a plan runs only its own steps */
    char note[160];      /* "", or why it does not run the segment in the
                            device's fastest way, naming the setting that
                            prevents it: "recurrent_activation hard_sigmoid is
                            not fused". Shown to people, never interpreted */
    char refusal[160];   /* "", or why it cannot run this segment here, as
                            preparing weights has found: a kernel that its
                            driver does not compile, a library that is not
                            there. It is listed with that, and never run */
} cellgate_variant;

/*
 * A sequence in memory: element (b, t, k) is at
 * data[b * batch_stride + t * time_stride + k]. Strides are in elements and
 * may have any value that keeps the elements apart and is not negative, so
 * batch-major and time-major arrays are both covered. Never grows.
 */
typedef struct cellgate_sequence {
    void *data;
    int64_t batch_stride;
    int64_t time_stride; /* unused for a row a sample */
    int32_t dtype;       /* F32, or I32 for ids */
    int32_t reserved;    /* 0 */
} cellgate_sequence;

/*
 * State of one LSTM op: h is [directions][batch][R], c is
 * [directions][batch][H], dense float32. No buffer overlaps another.
 * Never grows.
 */
typedef struct cellgate_lstm_state {
    const float *h0; /* NULL: zeros */
    const float *c0; /* NULL: zeros */
    /* Written if not NULL, which only an op with CELLGATE_LSTM_H, _C may ask
       for. NULL: this run doesn't want it, and pays for no transfer. */
    float *h;
    float *c;
} cellgate_lstm_state;

/*
 * One run. All memory is the host's, valid during the call; x, lengths, h0 and
 * c0 are read only.
 */
typedef struct cellgate_segment_run {
    size_t struct_size;
    int64_t batch;
    int64_t steps;
    /*
     * A segment without an LSTM that is asked for y_last and not for y takes x
     * as one row a sample, [batch][features]; steps is 1 then.
     */
    cellgate_sequence x;
    /* [batch], each in [0, steps]; NULL means all are `steps`. */
    const int32_t *lengths;
    /* The last op's sequence result; data is NULL when it has none. */
    cellgate_sequence y;
    /* The last op's row result, or an LSTM's LAST; data NULL when none. */
    cellgate_sequence y_last;
    /* [op_count]; entries of ops other than LSTM are zero. NULL: all zero, so
       that no final state is wanted. */
    const cellgate_lstm_state *states;
    /*
     * NULL, or state that stays on the device: read instead of h0 and c0
     * (which are NULL then) and updated by a run that succeeds.
     */
    cellgate_resident *resident;
} cellgate_segment_run;

/* Where the last run of a plan spent its time, in seconds. */
typedef struct cellgate_breakdown {
    size_t struct_size;
    double upload;
    double compute;
    double download;
} cellgate_breakdown;

/* ---- The table --------------------------------------------------------- */

typedef struct cellgate_plugin {
    uint32_t magic; /* CELLGATE_PLUGIN_MAGIC */
    uint32_t abi_version;
    size_t struct_size;

    /* "openmp": what `plugin =` in the INI names. 1 to 63 lower-case letters,
       digits, '_' and '-'. */
    const char *name;
    const char *version; /* of the plugin, for people */
    /* Differs between builds whose speed may differ; part of the fingerprint.
     */
    const char *build;
    /* Keys taken in [device NAME], at most 256; NULL means none. The
       struct_size of the first is that of all of them. */
    const cellgate_key *keys;
    size_t key_count;
    /*
     * What the answers below depend on: absolute paths of files or folders
     * that a change of driver touches (they need not exist), "$NAME" for a
     * variable of the environment, and "$NAME/FILE" for files of that name in
     * the folders, separated by colons, that the variable lists. The host keeps
     * a plugin's answers between processes until one of these changes. At most
     * 64, ends with NULL; NULL means none.
     */
    const char *const *watched;

    /* -- required: a NULL here makes the plugin unusable -- */

    /*
     * Once a process, before anything else. `host` stays valid. Creates no
     * device context and starts no thread: it runs in the probe too.
     * NO_DEVICE, DEVICE_FAILED: nothing to offer here; the text says why and
     * what to install.
     */
    cellgate_status (*init)(const cellgate_host *host,
                            cellgate_instance **instance,
                            cellgate_error *error);
    /*
     * After every device is closed. A host that never unloads plugins, as
     * libcellgate, may end its process without.
     */
    void (*finish)(cellgate_instance *instance);

    /*
     * How many devices, at most 256; 0 is an answer, with the reason in the
     * log. The same number each time in a process.
     */
    uint32_t (*device_count)(cellgate_instance *instance);
    /*
     * index < device_count(). No contexts: it runs in the probe too. Every
     * text ends with a zero; name, resource and identity are not empty.
     */
    cellgate_status (*device_describe)(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error);
    /*
     * Contexts, threads and handles are made here. `settings` stays valid
     * until device_close(); NULL means every key has its default. The same
     * index may be opened several times, with different settings.
     */
    cellgate_status (*device_open)(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error);
    /* After everything made from the device is freed. NULL is allowed. */
    void (*device_close)(cellgate_device *device);

    /*
     * Variant number `index` for this segment at this shape, counted from 0
     * without gaps: OK fills *variant, END says there is no such number.
     * At index 0, UNSUPPORTED (with error->reason and a text that names the
     * option) says that the device does not take this segment. Cheap: no
     * compilation, no upload. `shape` NULL means any shape at all.
     */
    cellgate_status (*support)(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant,
                               cellgate_error *error);

    /*
     * Lays out (uploads, compiles for) a segment's weights for one pack. May
     * take long; nothing slow is left for the first run, but for what it is not
     * safe to try: no watchdog sees to this, and the variant that is tried may
     * be none that anybody chose. The result is immutable: any number of plans
     * share it, from any thread. A variant of the pack that turns out not to
     * start here is no failure while another one does: support() gives its
     * refusal from then on.
     */
    cellgate_status (*prepare)(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error);
    /* After every plan and resident state made with it is destroyed. NULL is
       allowed. */
    void (*weights_free)(cellgate_weights *weights);

    /*
     * Allocates everything that runs up to `shape` need: a run's batch and
     * steps are each at most the plan's, or equal to it where the variant says
     * exact. DEVICE_MEMORY: it does not fit.
     */
    cellgate_status (*plan_create)(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error);
    void (*plan_destroy)(cellgate_plan *plan); /* NULL is allowed */

    /*
     * Computes, and returns when all results are in the caller's memory. One
     * thread at a time a plan; plans of one device run side by side. Allocates
     * nothing of its own. Outside the plan's shape: INVALID. UNSUPPORTED: that
     * the variant does not run at this shape shows only now; support() gives
     * its refusal there from then on. DEVICE_LOST: this
     * device will not work again in this process; what was made from it can
     * still be freed, and that neither fails nor waits. After any failure the
     * contents of the outputs are undefined and the resident state is as it
     * was before the run; the inputs are intact, so the host can run elsewhere.
     */
    cellgate_status (*run)(cellgate_plan *plan, const cellgate_segment_run *run,
                           cellgate_error *error);

    /* -- optional: what NULL means is said for each -- */

    /* Of the plan's last successful run. NULL: no breakdown. */
    cellgate_status (*breakdown)(cellgate_plan *plan, cellgate_breakdown *out,
                                 cellgate_error *error);

    /*
     * Resident state for `batch` rows of a segment's LSTM ops, zero at first,
     * usable with every plan of these weights, by one run at a time and of
     * that batch. Export and import copy between it and the canonical layout
     * in host memory: export fills h and c, import reads h0 and c0, of each
     * LSTM op's entry. All four NULL: state goes through host memory on each
     * run.
     */
    cellgate_status (*resident_create)(cellgate_weights *weights, int64_t batch,
                                       cellgate_resident **resident,
                                       cellgate_error *error);
    void (*resident_destroy)(cellgate_resident *resident);
    cellgate_status (*resident_export)(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error);
    cellgate_status (*resident_import)(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error);

    /*
     * Host memory that the device transfers from and to fastest, at a multiple
     * of 64 bytes; NULL if there is none left. The host places its buffers
     * there where it can, and run() works with any memory. What one call gave
     * is of one run at a time: while a run has anything of it, nobody else
     * touches any of it, as a device that shares the host's memory may work on
     * it as it is. NULL (both): ordinary memory will do.
     */
    void *(*host_allocate)(cellgate_device *device, size_t size);
    void (*host_release)(cellgate_device *device, void *memory);

    /* Device memory in use by what the host holds, bytes. NULL: unknown. */
    uint64_t (*memory_used)(cellgate_device *device);

    /*
     * The names of all variants that support() may give, on whatever machine:
     * what `exclude` in the INI is checked against. A name may end in '*' for
     * any rest. At most 256, ends with NULL; NULL: names are not checked.
     */
    const char *const *variants;
} cellgate_plugin;

/*
 * The entry, exported under the name CELLGATE_PLUGIN_SYMBOL. The host passes
 * the lowest and the highest ABI version that it can talk; the plugin returns
 * a table with a version in that range, or NULL if it has none. The table is
 * constant and lives as long as the process. No other work is done here.
 */
typedef const cellgate_plugin *(*cellgate_plugin_entry_fn)(uint32_t lowest,
                                                           uint32_t highest);
CELLGATE_PLUGIN_EXPORT const cellgate_plugin *
cellgate_plugin_entry(uint32_t lowest, uint32_t highest);

/* ---- Help for plugin writers ------------------------------------------- */

#if defined(__GNUC__)
#define CELLGATE_PRINTF_LIKE(text, first)                                      \
    __attribute__((format(printf, text, first)))
#else
#define CELLGATE_PRINTF_LIKE(text, first)
#endif

/* What the two below have in common. A text is one line, and is shown on
   terminals: control characters, which names out of files may have, become '?'.
 */
CELLGATE_PRINTF_LIKE(4, 0)
static inline void cellgate_error_fill(cellgate_error *error,
                                       cellgate_status status,
                                       cellgate_reason reason,
                                       const char *format, va_list arguments)
{
    char *at;

    error->status = (int32_t)status;
    error->reason = (int32_t)reason;
    error->vendor_code = 0;
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    for (at = error->text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
}

/* Fills *error and returns `status`: return cellgate_fail(error, ...); */
CELLGATE_PRINTF_LIKE(3, 4)
static inline cellgate_status cellgate_fail(cellgate_error *error,
                                            cellgate_status status,
                                            const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        cellgate_error_fill(error, status, CELLGATE_REASON_NONE, format,
                            arguments);
        va_end(arguments);
    }
    return status;
}

/* Refuses a segment: fills *error and returns CELLGATE_UNSUPPORTED. */
CELLGATE_PRINTF_LIKE(3, 4)
static inline cellgate_status cellgate_refuse(cellgate_error *error,
                                              cellgate_reason reason,
                                              const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        cellgate_error_fill(error, CELLGATE_UNSUPPORTED, reason, format,
                            arguments);
        va_end(arguments);
    }
    return CELLGATE_UNSUPPORTED;
}

/*
 * Whether a struct from the host asks only for what a reader that knows `known`
 * bytes of it understands: every byte beyond is zero. A struct shorter than
 * that is an older one; read it through cellgate_struct_copy(), which supplies
 * the defaults.
 */
static inline int cellgate_struct_known(const void *object, size_t known)
{
    const unsigned char *bytes = (const unsigned char *)object;
    size_t size, at;
    memcpy(&size, object, sizeof size);
    for (at = known; at < size; at++)
        if (bytes[at] != 0)
            return 0;
    return 1;
}

/*
 * Copies a struct between two versions of it: as many bytes as both have, the
 * rest of *to zero. to->struct_size must be set and is kept. Use it to read a
 * host's struct of any age, and to fill a struct that the host declared.
 */
static inline void cellgate_struct_copy(void *to, const void *from)
{
    size_t to_size, from_size, both;
    memcpy(&to_size, to, sizeof to_size);
    memcpy(&from_size, from, sizeof from_size);
    both = to_size < from_size ? to_size : from_size;
    memset((char *)to + sizeof(size_t), 0, to_size - sizeof(size_t));
    memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
           both - sizeof(size_t));
}

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_PLUGIN_H */

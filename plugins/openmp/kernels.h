/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: the kernels, in terms of the vector that a vec_ header defines.
 * Each kernels_<level>.c includes it once, after that header, with
 *
 *   KERNELS_TABLE  the table to define, KERNELS_NAME  its name
 *   WEIGHTS_F16 or WEIGHTS_INT8 where the weights are not float32 (narrow.h)
 *
 * A tile is `rows` rows by one panel: 4 * rows vectors of sums, held in
 * registers over the whole depth. `rows` is a constant in every inlined copy.
 * A row's sums never meet another row's, so a NaN stays in its row. Each sum
 * begins with the bias and adds its products in the order of the depth, input
 * before recurrent, in every tile and however the work is blocked or shared:
 * a sample's result has the same bits in any batch and on any number of
 * threads.
 */
#include <stdbool.h>
#include <stddef.h>

#include "plugins/openmp/cell.h"
#include "plugins/openmp/kernels_row.h"
#include "plugins/openmp/levels.h"

/* [first, end) of something. */
struct range {
    int64_t first;
    int64_t end;
};

/* Weights to fetch into the level-2 cache while a tile runs: `step` bytes, two
   lines at most, for each of its inputs. */
#define LINE 64 /* bytes of a cache */

struct ahead {
    const char *from; /* NULL: none */
    int64_t step;
};

/* ---- Weights ----------------------------------------------------------- */

#if defined(WEIGHTS_F16)
typedef uint16_t weight;
#define WEIGHTS_PACK CPU_PACK_F16
#define weight_load vf_load_f16
#elif defined(WEIGHTS_INT8)
typedef int8_t weight;
#define WEIGHTS_PACK CPU_PACK_INT8
#define weight_load vf_load_int8
#else
typedef float weight;
#define WEIGHTS_PACK CPU_PACK_F32
#define weight_load vf_load
#endif
#define SCALED (WEIGHTS_PACK == CPU_PACK_INT8)

/* Multiplies sums by their columns' scales, or by the reciprocals of these. */
INLINE void scale_sums(vf sum[][4], const int rows,
                       const struct cpu_matrix *matrix, int64_t panel,
                       const int reciprocals)
{
    const float *scales =
        SCALED ? matrix->scales + (2 * panel + reciprocals) * PANEL : NULL;
    int r, g;

    UNROLL
    for (g = 0; SCALED && g < 4; g++) {
        const vf scale = vf_load(scales + g * VF_WIDTH);

        UNROLL
        for (r = 0; r < rows; r++)
            sum[r][g] = vf_mul(sum[r][g], scale);
    }
}

/*
 * While the products of a matrix are added to them, sums are in units of their
 * columns' scales: from the first of its depth until the last, however that is
 * blocked.
 */
INLINE void enter_units(vf sum[][4], const int rows,
                        const struct cpu_matrix *matrix, int64_t panel,
                        struct range depth)
{
    if (SCALED && depth.first == 0)
        scale_sums(sum, rows, matrix, panel, 1);
}

INLINE void leave_units(vf sum[][4], const int rows,
                        const struct cpu_matrix *matrix, int64_t panel,
                        struct range depth)
{
    if (SCALED && depth.end == matrix->depth)
        scale_sums(sum, rows, matrix, panel, 0);
}

/* ---- Products ---------------------------------------------------------- */

INLINE void accumulate_rows(vf sum[][4], const int rows, const float *const *in,
                            int64_t first, const weight *panel, int64_t depth,
                            struct ahead ahead, const bool fetch)
{
    const float *from[VF_TILE];
    int64_t k;
    int r, g;

    UNROLL
    for (r = 0; r < rows; r++)
        from[r] = in[r] + first;
    UNROLL_DEPTH
    for (k = 0; k < depth; k++) {
        vf value[VF_TILE];

        if (fetch) {
            __builtin_prefetch(ahead.from + k * ahead.step, 0, 2);
            if (ahead.step > LINE)
                __builtin_prefetch(ahead.from + k * ahead.step + LINE, 0, 2);
        }
        UNROLL
        for (r = 0; r < rows; r++)
            value[r] = vf_set(from[r][k]);
        UNROLL
        for (g = 0; g < 4; g++) {
            vf factor = weight_load(panel + k * PANEL + g * VF_WIDTH);

            UNROLL
            for (r = 0; r < rows; r++)
                sum[r][g] = vf_fma(value[r], factor, sum[r][g]);
        }
    }
}

/*
 * One row alone has four sums, too few to hide the latency of an addition, so
 * it takes two panels at a time.
 */
INLINE void accumulate_pair(vf one[4], vf other[4], const float *in,
                            const weight *panel, const weight *other_panel,
                            int64_t depth)
{
    int64_t k;
    int g;

    UNROLL_DEPTH
    for (k = 0; k < depth; k++) {
        const vf value = vf_set(in[k]);

        UNROLL
        for (g = 0; g < 4; g++) {
            const int64_t at = k * PANEL + g * VF_WIDTH;

            one[g] = vf_fma(value, weight_load(panel + at), one[g]);
            other[g] = vf_fma(value, weight_load(other_panel + at), other[g]);
        }
    }
}

/* Where a range of a panel's depth begins. */
INLINE const weight *weights_of(const struct cpu_matrix *matrix, int64_t panel,
                                struct range depth)
{
    return (const weight *)matrix->panels +
           (panel * matrix->depth + depth.first) * PANEL;
}

/* A range of inputs with their weights. */
INLINE void accumulate(vf sum[][4], const int rows, const float *const *in,
                       const struct cpu_matrix *matrix, int64_t panel,
                       struct range depth, struct ahead ahead)
{
    const weight *weights = weights_of(matrix, panel, depth);
    const int64_t count = depth.end - depth.first;

    enter_units(sum, rows, matrix, panel, depth);
    if (ahead.from)
        accumulate_rows(sum, rows, in, depth.first, weights, count, ahead,
                        true);
    else
        accumulate_rows(sum, rows, in, depth.first, weights, count, ahead,
                        false);
    leave_units(sum, rows, matrix, panel, depth);
}

/* The same for one row and two panels. */
INLINE void accumulate_both(vf sum[2][4], const float *in,
                            const struct cpu_matrix *matrix,
                            const int64_t panel[2], struct range depth)
{
    enter_units(sum, 1, matrix, panel[0], depth);
    enter_units(sum + 1, 1, matrix, panel[1], depth);
    accumulate_pair(
        sum[0], sum[1], in + depth.first, weights_of(matrix, panel[0], depth),
        weights_of(matrix, panel[1], depth), depth.end - depth.first);
    leave_units(sum, 1, matrix, panel[0], depth);
    leave_units(sum + 1, 1, matrix, panel[1], depth);
}

INLINE void start_from_bias(vf sum[][4], const int rows,
                            const struct cpu_matrix *matrix, int64_t panel)
{
    int r, g;

    UNROLL
    for (g = 0; g < 4; g++) {
        vf bias = vf_load(matrix->bias + panel * PANEL + g * VF_WIDTH);

        UNROLL
        for (r = 0; r < rows; r++)
            sum[r][g] = bias;
    }
}

/* The results of the depth before. */
INLINE void start_from_results(vf sum[][4], const int rows,
                               const struct cpu_product *p, int64_t panel,
                               int64_t row)
{
    int r, g;

    UNROLL
    for (r = 0; r < rows; r++) {
        const float *from = p->out[row + r] + panel * PANEL;
        int64_t left = p->columns - panel * PANEL;

        UNROLL
        for (g = 0; g < 4; g++, left -= VF_WIDTH)
            sum[r][g] = load_within(from + g * VF_WIDTH, left);
    }
}

INLINE void start_product(vf sum[][4], const int rows,
                          const struct cpu_product *p, struct range depth,
                          int64_t panel, int64_t row)
{
    if (depth.first == 0)
        start_from_bias(sum, rows, p->matrix, panel);
    else
        start_from_results(sum, rows, p, panel, row);
}

/* Takes up to one vector of results, of which `count` lanes (1 or more) exist.
 */
INLINE void keep_largest(float *largest, vf a, const float *stored,
                         int64_t count)
{
    int64_t i;

    if (count >= VF_WIDTH)
        vf_store(largest, vf_max(a, vf_load(largest)));
    for (i = 0; count < VF_WIDTH && i < count; i++)
        largest[i] = stored[i] > largest[i] ? stored[i] : largest[i];
}

INLINE void store_product(vf sum[][4], const int rows,
                          const struct cpu_product *p, struct range depth,
                          int64_t panel, int64_t row)
{
    const bool last = p->largest && depth.end == p->matrix->depth;
    int r, g;

    UNROLL
    for (r = 0; r < rows; r++) {
        float *to = p->out[row + r] + panel * PANEL;
        int64_t left = p->columns - panel * PANEL;

        UNROLL
        for (g = 0; g < 4; g++, left -= VF_WIDTH)
            if (left > 0) {
                store_within(to + g * VF_WIDTH, sum[r][g], left);
                if (last)
                    keep_largest(p->largest + (row + r) * VF_WIDTH, sum[r][g],
                                 to + g * VF_WIDTH, left);
            }
    }
}

INLINE void product_tile(const struct cpu_product *p, struct range depth,
                         int64_t panel, int64_t row, const int rows,
                         struct ahead ahead)
{
    vf sum[VF_TILE][4];

    start_product(sum, rows, p, depth, panel, row);
    accumulate(sum, rows, p->in + row, p->matrix, panel, depth, ahead);
    store_product(sum, rows, p, depth, panel, row);
}

/* One row by two panels. */
INLINE void product_pair(const struct cpu_product *p, struct range depth,
                         const int64_t panel[2])
{
    vf sum[2][4];

    start_product(sum, 1, p, depth, panel[0], 0);
    start_product(sum + 1, 1, p, depth, panel[1], 0);
    accumulate_both(sum, p->in[0], p->matrix, panel, depth);
    store_product(sum, 1, p, depth, panel[0], 0);
    store_product(sum + 1, 1, p, depth, panel[1], 0);
}

/* ---- A step ------------------------------------------------------------ */

INLINE void start_from_gates(vf sum[][4], const int rows,
                             const struct cpu_step *s, int64_t panel,
                             int64_t row)
{
    int r, g;

    UNROLL
    for (r = 0; r < rows; r++) {
        const float *from =
            s->gates + (row + r) * s->gates_stride + panel * PANEL;

        UNROLL
        for (g = 0; g < 4; g++)
            sum[r][g] = vf_load(from + g * VF_WIDTH);
    }
}

/* Adds a range of the recurrent product to the gates. */
INLINE void gates_tile(const struct cpu_step *s, struct range depth,
                       int64_t panel, int64_t row, const int rows,
                       struct ahead ahead)
{
    vf sum[VF_TILE][4];
    int r, g;

    start_from_gates(sum, rows, s, panel, row);
    accumulate(sum, rows, s->h + row, s->recurrent, panel, depth, ahead);
    UNROLL
    for (r = 0; r < rows; r++) {
        float *to = s->gates + (row + r) * s->gates_stride + panel * PANEL;

        UNROLL
        for (g = 0; g < 4; g++)
            vf_store(to + g * VF_WIDTH, sum[r][g]);
    }
}

INLINE struct place place_of(const struct cpu_step *s, int64_t panel,
                             int64_t row)
{
    const float *peepholes = s->cell->peepholes;
    const int64_t unit = panel * VF_WIDTH;

    return (struct place){ s->c + row * s->c_stride + unit, s->out[row] + unit,
                           s->recurrent->columns - unit,
                           peepholes ? peepholes + 3 * unit : NULL };
}

NOINLINE void finish_general(const struct cpu_cell *cell, const int n,
                             const float *sums, const struct place *places)
{
    vf gates[4][VF_TILE], h[VF_TILE];
    int r, g;

    for (r = 0; r < n; r++)
        for (g = 0; g < 4; g++)
            gates[g][r] = vf_load(sums + r * PANEL + g * VF_WIDTH);
    general_cells(cell, places, n, gates, h);
    for (r = 0; r < n; r++)
        store_within(places[r].out, h[r], places[r].left);
}

/*
 * From the gates' sums of n places to the new states and outputs. First all
 * states, then all outputs: a place's own are a chain of operations that wait
 * for one another, and a processor looks ahead over little more than one.
 */
INLINE void finish_step(const struct cpu_cell *cell, vf sum[][4], const int n,
                        const struct place *places)
{
    int r, g;

    if (cell->standard) {
        vf state[VF_TILE];

        UNROLL
        for (r = 0; r < n; r++)
            state[r] = standard_state(sum[r], places[r].c);
        UNROLL
        for (r = 0; r < n; r++)
            store_within(places[r].out, standard_output(sum[r], state[r]),
                         places[r].left);
    } else {
        float sums[VF_TILE * 4 * VF_WIDTH];

        UNROLL
        for (r = 0; r < n; r++) {
            UNROLL
            for (g = 0; g < 4; g++)
                vf_store(sums + r * PANEL + g * VF_WIDTH, sum[r][g]);
        }
        finish_general(cell, n, sums, places);
    }
}

INLINE void step_tile(const struct cpu_step *s, struct range depth,
                      int64_t panel, int64_t row, const int rows,
                      struct ahead ahead)
{
    const struct range all = { 0, s->kernel->depth };
    vf sum[VF_TILE][4];
    struct place places[VF_TILE];
    int r;

    if (s->x) {
        start_from_bias(sum, rows, s->kernel, panel);
        accumulate(sum, rows, s->x + row, s->kernel, panel, all,
                   (struct ahead){ NULL, 0 });
    } else {
        start_from_gates(sum, rows, s, panel, row);
    }
    accumulate(sum, rows, s->h + row, s->recurrent, panel, depth, ahead);
    UNROLL
    for (r = 0; r < rows; r++)
        places[r] = place_of(s, panel, row + r);
    finish_step(s->cell, sum, rows, places);
}

/* One row by two panels. */
INLINE void step_pair(const struct cpu_step *s, struct range depth,
                      const int64_t panel[2])
{
    const struct range all = { 0, s->kernel->depth };
    const struct place places[2] = { place_of(s, panel[0], 0),
                                     place_of(s, panel[1], 0) };
    vf sum[2][4];

    if (s->x) {
        start_from_bias(sum, 1, s->kernel, panel[0]);
        start_from_bias(sum + 1, 1, s->kernel, panel[1]);
        accumulate_both(sum, s->x[0], s->kernel, panel, all);
    } else {
        start_from_gates(sum, 1, s, panel[0], 0);
        start_from_gates(sum + 1, 1, s, panel[1], 0);
    }
    accumulate_both(sum, s->h[0], s->recurrent, panel, depth);
    finish_step(s->cell, sum, 2, places);
}

/* ---- Tiles over a range ------------------------------------------------ */

/*
 * What a level-2 cache of 512 KB is trusted to keep: a range of a panel's
 * depth, the same of the panel that comes next, and a block of rows.
 */
#define PANEL_BYTES (128 * 1024)
#define ROWS_BYTES (256 * 1024)
#define DEPTH_BLOCK (PANEL_BYTES / (PANEL * (int64_t)sizeof(weight)))

/* Weights that come after those of a panel. */
struct next {
    const char *weights;
    int64_t bytes; /* 0: none */
};

/*
 * Whether that pays: not where the matrix is so small that the cache has it
 * already, nor for a single tile, which has nothing to hide the fetch behind.
 */
static bool fetches_ahead(const struct cpu_matrix *matrix, struct range block)
{
    const int64_t bytes =
        matrix->panel_count * matrix->depth * PANEL * (int64_t)sizeof(weight);

    return block.end - block.first > VF_TILE && bytes > 2 * ROWS_BYTES;
}

/* The range of `depth` of a panel; nothing beyond the matrix. */
static struct next next_of(const struct cpu_matrix *matrix, struct range depth,
                           int64_t panel)
{
    if (panel < 0 || panel >= matrix->panel_count)
        return (struct next){ NULL, 0 };
    return (struct next){ (const char *)weights_of(matrix, panel, depth),
                          (depth.end - depth.first) * PANEL *
                              (int64_t)sizeof(weight) };
}

/* The part of them that is due with `rows` of the block's rows. */
static inline struct ahead ahead_of(struct next next, struct range block,
                                    struct range depth, int64_t row, int rows)
{
    const int64_t count = block.end - block.first;

    if (next.bytes == 0)
        return (struct ahead){ NULL, 0 };
    return (
        struct ahead){ next.weights + next.bytes * (row - block.first) / count,
                       next.bytes * rows / count / (depth.end - depth.first) };
}

/*
 * Rows of the next tile: as many as a tile has, but the last two share evenly:
 * four rows are two tiles of two rather than one of three and one of one.
 */
static inline int tile_rows(int64_t left)
{
    return left >= 2 * VF_TILE ? VF_TILE
           : left > VF_TILE    ? (int)(left + 1) / 2
                               : (int)left;
}

/* Calls tile(..., row, rows) over a range of rows. */
#define EACH_TILE(block, next, call)                                           \
    do {                                                                       \
        int64_t row = block.first;                                             \
                                                                               \
        while (row < block.end) {                                              \
            int rows = tile_rows(block.end - row);                             \
            struct ahead ahead = ahead_of(next, block, depth, row, rows);      \
                                                                               \
            call;                                                              \
            row += rows;                                                       \
        }                                                                      \
    } while (0)

/*
 * One copy of a tile function for each number of rows that a tile can have.
 */
#define SIZE_CASE(function, argument, n)                                       \
    case n:                                                                    \
        function(argument, depth, panel, row, n, ahead);                       \
        break
#define EACH_SIZE(function, argument)                                          \
    switch (rows) {                                                            \
        SIZE_CASE(function, argument, 1);                                      \
        SIZE_CASE(function, argument, 2);                                      \
        EACH_SIZE_FROM_3(function, argument)                                   \
    }
#if VF_TILE == 2
#define EACH_SIZE_FROM_3(function, argument)
#elif VF_TILE == 3
#define EACH_SIZE_FROM_3(function, argument) SIZE_CASE(function, argument, 3);
#elif VF_TILE == 6
#define EACH_SIZE_FROM_3(function, argument)                                   \
    SIZE_CASE(function, argument, 3);                                          \
    SIZE_CASE(function, argument, 4);                                          \
    SIZE_CASE(function, argument, 5);                                          \
    SIZE_CASE(function, argument, 6);
#else
#error "add the sizes of this level's tile"
#endif

/* The next block of rows after `block`; false when there is none. */
static bool next_rows(struct range *block, int64_t rows, struct range depth)
{
    block->first = block->end;
    block->end = rows;
    if (rows - block->first > VF_TILE) {
        int64_t tile_bytes =
            (depth.end - depth.first) * VF_TILE * (int64_t)sizeof(float);
        int64_t end = block->first + (ROWS_BYTES / tile_bytes + 1) * VF_TILE;

        if (end < rows)
            block->end = end;
    }
    return block->first < rows;
}

/* The next range of the depth after `depth`, up to `end`, in the same way. */
static bool next_depth(struct range *depth, int64_t end)
{
    depth->first = depth->end;
    depth->end += DEPTH_BLOCK;
    if (depth->end > end)
        depth->end = end;
    return depth->first < depth->end;
}

static void product_block(const struct cpu_product *p, struct range depth,
                          struct range block)
{
    const bool fetches = fetches_ahead(p->matrix, block);
    struct next next = { NULL, 0 };
    int64_t panel;

    for (panel = p->first_panel; panel < p->end_panel; panel++) {
        if (fetches)
            next = next_of(p->matrix, depth, panel + 1);
        EACH_TILE(block, next, EACH_SIZE(product_tile, p));
    }
}

static void product_row(const struct cpu_product *p, struct range depth)
{
    int64_t panel[2] = { p->first_panel, p->first_panel + 1 };

    for (; panel[1] < p->end_panel; panel[0] += 2, panel[1] += 2)
        product_pair(p, depth, panel);
    if (panel[0] < p->end_panel)
        product_tile(p, depth, panel[0], 0, 1, (struct ahead){ NULL, 0 });
}

static void product(const struct cpu_product *p)
{
    struct range depth = { 0, p->matrix->depth }, block = { 0, 0 };

    if (p->rows == 1) {
        product_row(p, depth);
        return;
    }
    for (depth.end = 0; next_depth(&depth, p->matrix->depth);)
        for (block.end = 0; next_rows(&block, p->rows, depth);)
            product_block(p, depth, block);
}

static void gates_block(const struct cpu_step *s, struct range depth,
                        struct range block)
{
    const bool fetches = fetches_ahead(s->recurrent, block);
    struct next next = { NULL, 0 };
    int64_t panel;

    for (panel = s->first_panel; panel < s->end_panel; panel++) {
        if (fetches)
            next = next_of(s->recurrent, depth, panel + 1);
        EACH_TILE(block, next, EACH_SIZE(gates_tile, s));
    }
}

static void step_block(const struct cpu_step *s, struct range depth,
                       struct range block)
{
    const bool fetches = fetches_ahead(s->recurrent, block);
    const int64_t forth = s->descending ? -1 : 1;
    int64_t panel = s->descending ? s->end_panel - 1 : s->first_panel;
    int64_t count = s->end_panel - s->first_panel;
    struct next next = { NULL, 0 };

    for (; count > 0; count--, panel += forth) {
        if (fetches)
            next = next_of(s->recurrent, depth, panel + forth);
        EACH_TILE(block, next, EACH_SIZE(step_tile, s));
    }
}

static void step_row(const struct cpu_step *s, struct range depth)
{
    const int64_t forth = s->descending ? -1 : 1;
    const int64_t from = s->descending ? s->end_panel - 1 : s->first_panel;
    int64_t panel[2] = { from, from + forth };
    int64_t count = s->end_panel - s->first_panel;

    for (; count > 1; count -= 2, panel[0] += 2 * forth, panel[1] += 2 * forth)
        step_pair(s, depth, panel);
    if (count > 0)
        step_tile(s, depth, panel[0], 0, 1, (struct ahead){ NULL, 0 });
}

/*
 * Many rows over a deep matrix: all but the last range of the depth is added
 * to the gates first, if there are gates, so that what is read again for each
 * tile stays in the cache.
 */
static void step(const struct cpu_step *s)
{
    const int64_t end = s->recurrent->depth;
    struct range depth = { 0, end }, block = { 0, s->rows };

    if (s->rows == 1) {
        step_row(s, depth);
        return;
    }
    if (s->gates && s->rows > VF_TILE)
        for (depth.end = 0; next_depth(&depth, end) && depth.end < end;)
            for (block.end = 0; next_rows(&block, s->rows, depth);)
                gates_block(s, depth, block);
    for (block.end = 0; next_rows(&block, s->rows, depth);)
        step_block(s, depth, block);
}

/* ---- The table --------------------------------------------------------- */

const struct cpu_kernels KERNELS_TABLE = {
    KERNELS_NAME, WEIGHTS_PACK, VF_WIDTH,     VF_TILE, product,
    step,         activate,     exponentials, scale,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* An HDF5 file in memory: all that can be reached, by every function. */
#include "config.h"

#include <string.h>

#include "runtime/formats/h5.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "h5";

/* Links may lead in circles. */
#define DEPTH_MOST 6
#define OBJECTS_MOST 200
#define PATH_ROOM 512

typedef struct walk {
    cg_h5 *h5;
    size_t objects;
} walk;

static void read_texts(const walk *of, const char *path)
{
    /* What Keras and h5py write, and one that is not there. */
    static const char *const names[] = { "dtype",         "layer_names",
                                         "weight_names",  "backend",
                                         "keras_version", "model_config",
                                         "nothing" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cg_h5_strings texts = { NULL, 0 };
        const cellgate_status status =
            cg_h5_texts(of->h5, path, names[i], &texts, &error);

        if (status != CELLGATE_NOT_FOUND)
            fuzz_check_error(status, &error);
        for (size_t k = 0; status == CELLGATE_OK && k < texts.count; k++)
            (void)strlen(texts.items[k]);
    }
}

static void read_dataset(const walk *of, const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5_extents shape;
    cellgate_status status = cg_h5_shape(of->h5, path, &shape, &error);
    size_t elements = 1;
    float *data;

    fuzz_check_error(status, &error);
    if (status != CELLGATE_OK)
        return;
    FUZZ_REQUIRE(shape.rank >= 0 && shape.rank <= CG_H5_MAX_RANK);
    status = cg_h5_check(of->h5, path, shape.rank, shape.extents, &error);
    fuzz_check_error(status, &error);
    if (status != CELLGATE_OK)
        return;
    /* What has been checked is bounded by the file. */
    for (int32_t axis = 0; axis < shape.rank; axis++)
        FUZZ_REQUIRE(!__builtin_mul_overflow(
            elements, (size_t)shape.extents[axis], &elements));
    data = malloc(elements * sizeof *data + 1);
    FUZZ_REQUIRE(data != NULL);
    fuzz_check_error(cg_h5_read(of->h5, path, elements, data, &error), &error);
    free(data);
}

static void visit(walk *of, const char *path, int depth)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5_strings names = { NULL, 0 };

    if (depth > DEPTH_MOST || of->objects++ > OBJECTS_MOST ||
        !cg_h5_has(of->h5, path))
        return;
    read_texts(of, path);
    read_dataset(of, path);
    if (cg_h5_members(of->h5, path, &names, &error) != CELLGATE_OK)
        return;
    for (size_t i = 0; i < names.count; i++) {
        char inner[PATH_ROOM];
        const int length =
            snprintf(inner, sizeof inner, "%s/%s", path, names.items[i]);

        if (i > 0)
            FUZZ_REQUIRE(strcmp(names.items[i - 1], names.items[i]) <= 0);
        if (length < 0 || (size_t)length >= sizeof inner)
            continue;
        visit(of, inner, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    walk of = { NULL, 0 };
    const cellgate_status status =
        cg_h5_open(data, size, "x.h5", &of.h5, &error);

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (of.h5 != NULL));
    if (of.h5 != NULL)
        visit(&of, "", 0);
    cg_h5_close(of.h5);
    return 0;
}

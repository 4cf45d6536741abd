/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/generate.h"

static bool get(const cellgate_generation *generation, int64_t row,
                int64_t result, cellgate_generated *generated)
{
    generated->struct_size = sizeof *generated;
    return cellgate_generation_get(generation, row, result, generated) ==
           CELLGATE_OK;
}

static int64_t longest(const cellgate_generation *generation)
{
    cellgate_generated one;
    int64_t row, result, most = 1;

    for (row = 0; row < cellgate_generation_rows(generation); row++)
        for (result = 0; get(generation, row, result, &one); result++)
            most = one.length > most ? one.length : most;
    return most;
}

cellgate_status cli_results_write(const cellgate_generation *generation,
                                  int64_t results, const char *path,
                                  cellgate_error *error)
{
    const int64_t rows = cellgate_generation_rows(generation);
    const int64_t columns = longest(generation);
    static const char *const names[] = { "ids" };
    cellgate_tensor tensor = { .struct_size = sizeof tensor,
                               .dtype = CELLGATE_I32 };
    cellgate_generated one;
    cellgate_status status;
    int64_t row, result;
    int32_t *ids =
        malloc((size_t)(rows * results) * (size_t)columns * sizeof *ids);

    if (ids == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    memset(ids, 0xff, /* -1 */
           (size_t)(rows * results) * (size_t)columns * sizeof *ids);
    for (row = 0; row < rows; row++)
        for (result = 0; get(generation, row, result, &one); result++)
            memcpy(ids + (row * results + result) * columns, one.ids,
                   (size_t)one.length * sizeof *ids);
    tensor.shape[tensor.rank++] = rows;
    if (results > 1)
        tensor.shape[tensor.rank++] = results;
    tensor.shape[tensor.rank++] = columns;
    tensor.data = ids;
    status = cellgate_arrays_write(path, names, &tensor, 1, error);
    free(ids);
    return status;
}

static void print_one(const cellgate_generated *one, const cli_words *words)
{
    char *text =
        words != NULL ? cli_words_join(words, one->ids, one->length) : NULL;
    int64_t at;

    if (text != NULL)
        printf("%s", text);
    for (at = 0; text == NULL && at < one->length; at++)
        printf("%s%" PRId32, at > 0 ? " " : "", one->ids[at]);
    putchar('\n');
    free(text);
}

void cli_results_print(const cellgate_generation *generation,
                       const cli_words *words)
{
    cellgate_generated one;
    int64_t row, result;

    for (row = 0; row < cellgate_generation_rows(generation); row++)
        for (result = 0; get(generation, row, result, &one); result++)
            print_one(&one, words);
}

static json_t *one_json(const cellgate_generated *one, const cli_words *words)
{
    json_t *ids = json_array(), *json;
    int64_t at;

    for (at = 0; at < one->length; at++)
        json_array_append_new(ids, json_integer(one->ids[at]));
    json = json_pack("{s:o, s:o, s:o, s:b}", "ids", ids, "score",
                     isfinite(one->score) ? json_real(one->score) : json_null(),
                     "value",
                     isfinite(one->value) ? json_real(one->value) : json_null(),
                     "stopped", (int)one->stopped);
    if (words != NULL) {
        char *text = cli_words_join(words, one->ids, one->length);

        json_object_set_new(json, "text",
                            text != NULL ? json_string(text) : json_null());
        free(text);
    }
    return json;
}

json_t *cli_results_json(const cellgate_generation *generation,
                         const cli_words *words)
{
    json_t *rows = json_array();
    cellgate_generated one;
    int64_t row, result;

    for (row = 0; row < cellgate_generation_rows(generation); row++) {
        json_t *results = json_array();

        for (result = 0; get(generation, row, result, &one); result++)
            json_array_append_new(results, one_json(&one, words));
        json_array_append_new(rows, results);
    }
    return rows;
}

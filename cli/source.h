/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays named on the command line: [NAME=]FILE[:ARRAY]. NAME is a model
 * input or output, FILE a .npy or .npz, ARRAY a member of the .npz.
 */
#ifndef CELLGATE_CLI_SOURCE_H
#define CELLGATE_CLI_SOURCE_H

#include "cellgate/cellgate.h"

typedef struct cli_source {
    char *name; /* NULL: not given */
    char *file;
    char *array; /* NULL: not given */
    cellgate_arrays *arrays;
} cli_source;

/* Splits the text, into a source that is all zeros, and reads nothing. */
cellgate_status cli_source_split(cli_source *source, const char *text,
                                 cellgate_error *error);
/* Splits the text and reads the file. The caller finishes the source. */
cellgate_status cli_source_init(cli_source *source, const char *text,
                                cellgate_error *error);
void cli_source_finish(cli_source *source);

/*
 * The array that the source names; without ARRAY, the one called `wanted`
 * (NULL: none), or the only one. BAD_FILE lists what the file has. The
 * tensor's data stay the source's.
 */
cellgate_status cli_source_tensor(const cli_source *source, const char *wanted,
                                  cellgate_tensor *tensor,
                                  cellgate_error *error);

/*
 * INVALID: the model has no input or output (`what`, which `get` lists) of that
 * name.
 */
typedef cellgate_status cli_value_getter(const cellgate_model *model,
                                         size_t index,
                                         cellgate_value_info *info);
cellgate_status cli_no_such_value(const cellgate_model *model,
                                  cli_value_getter *get, const char *what,
                                  const char *name, cellgate_error *error);

/* Element `index` of a numeric tensor. */
double cli_tensor_value(const cellgate_tensor *tensor, size_t index);
size_t cli_tensor_count(const cellgate_tensor *tensor);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model files: one reader a format, chosen by content, and the writer of the
 * native file.
 *
 * Texts of errors name the layer or the place in the file, not the path: that
 * is put in front once, by cellgate_model_load() and cellgate_model_save().
 */
#ifndef CELLGATE_RUNTIME_FORMATS_FORMATS_H
#define CELLGATE_RUNTIME_FORMATS_FORMATS_H

#include "runtime/model/model.h"

/* An open file, as the readers get it. */
typedef struct cg_source {
    const char *path;
    int fd; /* of a regular file; readers leave its offset anywhere */
    uint64_t size;
    unsigned char head[16]; /* its first bytes */
    size_t head_size;
} cg_source;

/*
 * A reader looks at the content first and says NOT_FOUND, without filling
 * *error, if the file is not its own. Otherwise it fills *model with a finished
 * model, or fails.
 */
typedef cellgate_status (*cg_reader)(const cg_source *source,
                                     cellgate_model **model,
                                     cellgate_error *error);

/* keras_config.c: Keras 3's .keras */
cellgate_status cg_keras_read(const cg_source *source, cellgate_model **model,
                              cellgate_error *error);

/* native_reader.c, native_writer.c: Cellgate's own, a safetensors file */
cellgate_status cg_native_read(const cg_source *source, cellgate_model **model,
                               cellgate_error *error);
cellgate_status cg_native_write(const cellgate_model *model, const char *path,
                                cellgate_error *error);

#endif

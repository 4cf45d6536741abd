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

#include "runtime/formats/source.h"
#include "runtime/model/model.h"

/*
 * A reader looks at the content first and says NOT_FOUND, without filling
 * *error, if the file is not its own. Otherwise it fills *model with a finished
 * model, or fails.
 */
typedef cellgate_status (*cg_reader)(const cg_source *source,
                                     cellgate_model **model,
                                     cellgate_error *error);

/* keras_config.c: .keras, of Keras 2.13 and later */
cellgate_status cg_keras_read(const cg_source *source, cellgate_model **model,
                              cellgate_error *error);
/* keras_hdf5.c: .h5, a whole model or its weights, whose architecture is in a
   .json beside it; and that .json, with its weights beside it */
cellgate_status cg_keras_read_hdf5(const cg_source *source,
                                   cellgate_model **model,
                                   cellgate_error *error);
cellgate_status cg_keras_read_json(const cg_source *source,
                                   cellgate_model **model,
                                   cellgate_error *error);

/* native_reader.c, native_writer.c: Cellgate's own, a safetensors file */
cellgate_status cg_native_read(const cg_source *source, cellgate_model **model,
                               cellgate_error *error);
cellgate_status cg_native_write(const cellgate_model *model, const char *path,
                                cellgate_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fixtures/h5/EXPECTED: what is in the HDF5 files beside it, as questions
 * to a reader with their answers. make_h5.py says what the lines mean.
 */
#ifndef CELLGATE_TESTS_UNIT_H5_QUESTIONS_H
#define CELLGATE_TESTS_UNIT_H5_QUESTIONS_H

#include "runtime/formats/h5.h"

#define H5_MAX_PARTS 128

typedef struct h5_question {
    const char *file; /* "earliest": earliest.h5 */
    const char *kind; /* "data", "refused", "members", "texts", "absent" */
    const char *path;
    const char *parts[H5_MAX_PARTS]; /* the rest of the line */
    size_t count;
} h5_question;

typedef struct h5_questions {
    h5_question *items;
    size_t count;
    char *text;
} h5_questions;

h5_questions h5_questions_read(void);
void h5_questions_finish(h5_questions *questions);

/* The bytes of a file, which the caller frees. */
unsigned char *h5_fixture(const char *name, size_t *size);

/* The shape in a question's first part. */
cg_h5_extents h5_question_shape(const h5_question *question);

/*
 * Asks it, and looks at all that is answered. Returns the status; `error` may
 * be NULL. A wrong answer fails the test where `right` says that answers have
 * to be right.
 */
cellgate_status h5_question_ask(cg_h5 *h5, const h5_question *question,
                                bool right, cellgate_error *error);

#endif
